import { posix, win32 } from 'node:path';
import * as z from 'zod';
import { Failure } from '../../contract/failure.ts';
import { BRIEF, QUOTA } from '../../contract/limits.ts';
import { DEFAULT_ADDRESS } from '../../contract/names.ts';
import { parseHostAllowlist } from '../../core/packs/hosts.ts';
import { parseListenAddress, parseServerAddress } from '../../listeners/address.ts';
import { createProxyList } from '../../listeners/team/proxy-list.ts';

interface SettingSource {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
}

export interface Setting {
  /** Description, shown by `help settings` and in docs/settings.md. */
  readonly help: string;
  /** JSON type of the value in the configuration file. In the environment, a list is text with commas between the items. */
  readonly fileType: 'text' | 'number' | 'list';
  /** Parses the text from the environment. Absent if the code that uses the setting parses the text itself. */
  readonly schema?: (platform: NodeJS.Platform) => z.ZodType<unknown, string>;
  /** Text to use if the setting is not set. */
  readonly default?: string;
  /** Text to show if the setting is not set and has no default, such as `never`. */
  readonly whenUnset?: string;
  readonly choices?: readonly string[];
  /** A change takes effect immediately, instead of at the next start. */
  readonly immediate?: true;
  /**
   * Name of the setting in the window, which lets the owner change the setting. Absent for settings that decide where a key or a
   * secret is read, which code runs, or which hosts the program connects to.
   */
  readonly label?: string;
  /** The value is a number of bytes. */
  readonly unit?: 'bytes';
  /** The value of the setting is never shown. */
  readonly secret?: true;
}

const DAY_MINUTES = 24 * 60;

const wholeNumber = () =>
  z
    .string()
    // Accept at most 15 digits, because a JavaScript number can represent every such number exactly.
    .regex(/^[1-9]\d{0,14}$/, 'must be a whole number of 1 or more; write digits only, or remove the setting')
    .transform(Number);

const briefBytes = () => {
  const error = `must be 0 or a whole number from ${BRIEF.minBytes} to ${BRIEF.maxBytes}; write digits only, or remove the setting`;
  return z
    .string()
    .regex(/^(0|[1-9]\d{0,4})$/, error)
    .transform(Number)
    .refine((bytes) => bytes === 0 || (bytes >= BRIEF.minBytes && bytes <= BRIEF.maxBytes), error);
};

const lockAfter = () =>
  wholeNumber().refine(
    (minutes) => minutes <= DAY_MINUTES,
    `must be at most ${DAY_MINUTES} minutes, which is a day; write a smaller number, or remove the setting to lock only by hand`,
  );

/** Accepts only an absolute path, because a relative path would depend on the folder in which the program is started. */
const absolutePath = (error: string) => (platform: NodeJS.Platform) =>
  z.string().refine((path) => (platform === 'win32' ? win32 : posix).isAbsolute(path), error);

const oneOf = <const Choice extends string>(choices: readonly [Choice, ...Choice[]]) => ({
  fileType: 'text' as const,
  choices,
  schema: () =>
    z.enum(choices, `must be ${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}; write one of them, or remove the setting`),
});

const splitAtCommas = (text: string): readonly string[] => text.split(',').map((item) => item.trim());

/** Matches the value of a Host header: a lower-case name or an IPv6 address, with an optional port. */
const HOST = /^([a-z0-9-]+(\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(:\d{1,5})?$/;

const hostHeaders = () =>
  z
    .string()
    .transform(splitAtCommas)
    .refine(
      (hosts) => hosts.every((host) => HOST.test(host)),
      'must be Host headers such as memory.example:8443, separated by commas; correct or remove the setting',
    );

const serverAddress = () =>
  z.string().transform((text, context) => {
    const address = parseServerAddress(text);
    if (address) return address;
    const message =
      'must be an IP address of this machine with a port, such as 0.0.0.0:7443 or [::]:7443; correct or remove the setting';
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });

const proxies = () =>
  z
    .string()
    .transform(splitAtCommas)
    .refine(
      (addresses) => createProxyList(addresses) !== undefined,
      'must be the IP address of the proxy, such as 127.0.0.1, or its network, such as 172.18.0.0/16 (at most /16, for IPv6 /64); correct or remove the setting',
    );

const fetchHosts = () =>
  z
    .string()
    .transform(splitAtCommas)
    .refine(
      (hosts) => parseHostAllowlist(hosts, '') !== undefined,
      'must be full host names in lower case, separated by commas, such as docs.example.com, or *.example.com for all hosts below example.com, with a port unless it is 443; correct or remove the setting',
    );

/**
 * Splits a list of packs without checking the names. An invalid name is reported when the pack is loaded, and does not
 * prevent startup.
 */
const packNames = () => z.string().transform((text) => splitAtCommas(text).filter((name) => name !== ''));

/** Requires a modifier other than Shift. Without it, the shortcut would intercept a normal letter in every program. */
const SHORTCUT =
  /^(?=.*(Ctrl|Alt|Cmd|CmdOrCtrl|Super)\+)((Ctrl|Alt|Cmd|CmdOrCtrl|Super|Shift)\+){1,4}([A-Z0-9]|F([1-9]|1\d|2[0-4])|Space)$/;

const shortcut = () =>
  z
    .string()
    .regex(
      SHORTCUT,
      'must be a key combination such as Ctrl+Shift+M or CmdOrCtrl+Alt+Space: a letter, a digit, F1 to F24 or Space after Ctrl, Alt, Cmd or Super; correct or remove the setting',
    );

const MODEL = /^[a-z0-9][a-z0-9._-]{0,63}(\/[a-z0-9][a-z0-9._-]{0,63})?(:[a-z0-9][a-z0-9._-]{0,63})?$/i;
const CLOUD_MODEL = /[:-]cloud$/i;

const localModel = () =>
  z
    .string()
    .refine(
      (model) => MODEL.test(model) && !CLOUD_MODEL.test(model),
      'must be the name of a model that Ollama runs on this machine, such as nomic-embed-text; correct or remove the setting',
    );

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]']);

/**
 * Whether the URL is an address of this machine, without a path. Facts are sent to this address and must not leave the machine.
 */
function isLoopbackOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'http:' && LOOPBACK.has(url.hostname) && url.href === `${url.origin}/`;
}

const loopbackUrl = () =>
  z
    .string()
    .refine(
      isLoopbackOrigin,
      'must be an address of this machine such as http://127.0.0.1:11434, with nothing after the port; correct or remove the setting',
    )
    .transform((text) => new URL(text));

/** All settings. A setting has the same name in the environment and in the configuration file (R-HTTP-12). */
export const SETTINGS = {
  HELMDECK_DATA_DIR: {
    help: 'The data folder, as an absolute path. Cannot be set in the config.json of the data folder itself.',
    fileType: 'text',
    schema: absolutePath('must be an absolute path; write it in full, or remove the setting to use the default folder'),
  },
  HELMDECK_DATABASE_URL: {
    help: 'Address of a PostgreSQL database that stores the memory instead of the data folder, such as postgres://helmdeck@db.example/helmdeck. Several programs can use one database, each with its own data folder.',
    fileType: 'text',
    secret: true,
  },
  HELMDECK_DATABASE_URL_FILE: {
    help: 'Path of a file that contains the address of the database, with its password. Other users must not be able to read the file.',
    fileType: 'text',
  },
  HELMDECK_ADDR: {
    label: 'Address and port',
    help: 'The address to listen on: 127.0.0.1, localhost or [::1], with a port. Port 0 takes any free port. After a change, agents must use the new address.',
    fileType: 'text',
    schema: () => z.string().transform(parseListenAddress),
    default: DEFAULT_ADDRESS,
  },
  HELMDECK_ALLOWED_HOSTS: {
    help: 'Additional Host headers to accept at HELMDECK_ADDR, for a tunnel to this machine.',
    fileType: 'list',
    schema: hostHeaders,
  },
  HELMDECK_SERVER_ADDR: {
    help: 'The address on which other machines connect, such as 0.0.0.0:7443. Needs TLS (HELMDECK_TLS_CERT_FILE and HELMDECK_TLS_KEY_FILE) or a proxy (HELMDECK_TRUSTED_PROXY).',
    fileType: 'text',
    schema: serverAddress,
    whenUnset: 'off',
  },
  HELMDECK_SERVER_HOSTS: {
    help: 'Host headers with which other machines address this server, such as memory.example. Needed with a proxy. Default: the names in the certificate.',
    fileType: 'list',
    schema: hostHeaders,
  },
  HELMDECK_TLS_CERT_FILE: {
    help: 'Absolute path of the certificate for HELMDECK_SERVER_ADDR, with its intermediate certificates, in PEM.',
    fileType: 'text',
    schema: absolutePath('must be an absolute path; write it in full'),
  },
  HELMDECK_TLS_KEY_FILE: {
    help: 'Absolute path of the private key of the certificate, in PEM without a password. Other users must not be able to read the file.',
    fileType: 'text',
    schema: absolutePath('must be an absolute path; write it in full'),
  },
  HELMDECK_TRUSTED_PROXY: {
    help: 'IP addresses or networks of the proxy in front of HELMDECK_SERVER_ADDR. Connections from other addresses are closed.',
    fileType: 'list',
    schema: proxies,
  },
  HELMDECK_MEMORY_KEY: {
    help: 'The key of the memory, as 64 hexadecimal digits. Your other programs can read environment variables, so prefer a file.',
    fileType: 'text',
    secret: true,
  },
  HELMDECK_MEMORY_KEY_FILE: {
    help: 'Path of a file that contains the key of the memory. Default: the OS keychain, then the file memory.key.',
    fileType: 'text',
  },
  HELMDECK_MEMORY_KEY_NEXT: {
    help: 'The new key of the memory. Needed only to rotate a key that comes from the environment.',
    fileType: 'text',
    secret: true,
  },
  HELMDECK_MEMORY_KEY_NEXT_FILE: {
    help: 'Path of a file that contains the new key of the memory.',
    fileType: 'text',
  },
  HELMDECK_JWT_SECRET: {
    help: 'The secret that signs tokens, at least 32 bytes. Anyone who has it can create tokens. Default: a secret that the memory creates and stores.',
    fileType: 'text',
    secret: true,
  },
  HELMDECK_JWT_SECRET_FILE: {
    help: 'Path of a file that contains the secret that signs tokens.',
    fileType: 'text',
  },
  HELMDECK_FETCH_HOSTS: {
    help: 'Hosts that the pack http.fetch is allowed to read: docs.example.com, or *.example.com for all hosts below example.com, with a port unless it is 443. If not set, the pack is off.',
    fileType: 'list',
    schema: fetchHosts,
  },
  HELMDECK_GITHUB_TOKEN: {
    help: 'Token for the GitHub packs, for machines without a keychain.',
    fileType: 'text',
    secret: true,
  },
  HELMDECK_GITHUB_TOKEN_FILE: {
    help: 'Path of a file that contains the token for the GitHub packs.',
    fileType: 'text',
  },
  HELMDECK_QUOTA_FACTS: {
    label: 'Maximum number of facts per memory',
    help: 'Maximum number of facts that one subject can store.',
    fileType: 'number',
    schema: wholeNumber,
    default: String(QUOTA.facts),
  },
  HELMDECK_QUOTA_BYTES: {
    label: 'Maximum size of a memory',
    help: 'Maximum number of bytes that one subject can store, including earlier versions of facts.',
    fileType: 'number',
    schema: wholeNumber,
    default: String(QUOTA.bytes),
    unit: 'bytes',
  },
  HELMDECK_WRITES_PER_MINUTE: {
    label: 'Maximum writes per minute and agent',
    help: 'Maximum number of writes per minute for each token. Programs that share a database each count their own writes.',
    fileType: 'number',
    schema: wholeNumber,
    whenUnset: 'no limit',
  },
  HELMDECK_SECRETS: {
    label: 'Values that look like credentials',
    help: 'refuse: values that look like credentials are not stored. warn: such values are stored, and the agent is warned.',
    ...oneOf(['refuse', 'warn']),
    default: 'refuse',
  },
  HELMDECK_BRIEF_BYTES: {
    label: 'Maximum size of a brief',
    help: `Maximum bytes of a brief, the text that the hooks of agents put before a model: from ${BRIEF.minBytes} to ${BRIEF.maxBytes}, or 0 for no briefs.`,
    fileType: 'number',
    schema: briefBytes,
    default: String(BRIEF.bytes),
    unit: 'bytes',
  },
  HELMDECK_RECEIPTS: {
    label: 'Record what agents were shown',
    help: 'on or off. With on, the activity record says which facts a brief put before which agent. With off, nothing of it is stored.',
    ...oneOf(['on', 'off']),
    default: 'on',
  },
  HELMDECK_LOCK_AFTER: {
    label: 'Minutes of inactivity before the memory locks',
    help: 'Minutes without use after which the memory locks itself, from 1 to 1440. While the memory is locked, agents have no access.',
    fileType: 'number',
    schema: lockAfter,
    whenUnset: 'never',
  },
  HELMDECK_SHORTCUT: {
    label: 'Shortcut that opens the window',
    help: 'Keyboard shortcut that opens the desktop window from any program, such as Ctrl+Shift+M.',
    fileType: 'text',
    schema: shortcut,
    whenUnset: 'none',
  },
  HELMDECK_PACKS: {
    help: 'Names of your own packs to load.',
    fileType: 'list',
    schema: packNames,
  },
  HELMDECK_OPENCLAW_QMD: {
    label: 'OpenClaw: search through mcporter',
    help: 'on or off. With off, connecting OpenClaw does not register the search of this memory with mcporter. A change takes effect when you next connect OpenClaw.',
    ...oneOf(['on', 'off']),
    default: 'on',
  },
  HELMDECK_MEANING: {
    label: 'Search by meaning',
    help: 'bundled: the model that is installed with the program. ollama: the model that your Ollama serves (HELMDECK_EMBEDDINGS_MODEL). off: search by words only; stored vectors are deleted. A change takes effect immediately.',
    ...oneOf(['bundled', 'ollama', 'off']),
    immediate: true,
    whenUnset: 'bundled, or off if the bundled model is not installed',
  },
  HELMDECK_OLLAMA: {
    help: 'Absolute path of the program ollama. If not set, the usual places are searched.',
    fileType: 'text',
    schema: absolutePath(
      'must be the absolute path of the program ollama; write it in full, or remove the setting to search the usual places',
    ),
  },
  HELMDECK_OLLAMA_URL: {
    help: 'Address of an Ollama that you run yourself. It is used only if you choose it (embeddings on --adopt).',
    fileType: 'text',
    schema: loopbackUrl,
    default: 'http://127.0.0.1:11434',
  },
  HELMDECK_EMBEDDINGS_MODEL: {
    help: 'The model that creates embeddings.',
    fileType: 'text',
    schema: localModel,
    default: 'nomic-embed-text',
  },
} as const satisfies Record<string, Setting>;

type Settings = typeof SETTINGS;
export type SettingName = keyof Settings;

type Parsed<Name extends SettingName> = Settings[Name] extends { schema: (platform: never) => z.ZodType<infer Value, string> }
  ? Value
  : string;
type Unset<Name extends SettingName> = Settings[Name] extends { default: string } ? never : undefined;

export const isSettingName = (name: string): name is SettingName => Object.hasOwn(SETTINGS, name);

export const settingOf = (name: SettingName): Setting => SETTINGS[name];

/** Returns the value of a setting, or its default. Throws an error that names the setting if the value is invalid. */
export function readSetting<Name extends SettingName>(
  { environment, platform }: SettingSource,
  name: Name,
): Parsed<Name> | Unset<Name> {
  const { default: usual, schema } = settingOf(name);
  const text = environment[name] ?? usual;
  if (text === undefined || !schema) return text as Parsed<Name> | Unset<Name>;
  const { success, data, error } = schema(platform).safeParse(text);
  if (success) return data as Parsed<Name>;
  throw configFailure(`${name} ${error.issues[0]?.message}.`);
}

/** Creates the error for an invalid setting or configuration file. The program does not start with such an error. */
export const configFailure = (message: string, cause?: unknown): Failure =>
  new Failure('invalid_config', message, cause === undefined ? {} : { cause });
