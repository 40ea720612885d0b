import { posix, win32 } from 'node:path';
import * as z from 'zod';
import { Failure } from '../../contract/failure.ts';
import { DEFAULT_ADDRESS, QUOTA } from '../../contract/limits.ts';
import { parseHostAllowlist } from '../../core/packs/hosts.ts';
import { parseListenAddress } from '../../listeners/address.ts';

interface SettingSource {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
}

export interface Setting {
  /** One line for `help settings` and docs/settings.md. */
  readonly help: string;
  /** How the configuration file writes it. In the environment everything is text, and lists are separated by commas. */
  readonly fileType: 'text' | 'number' | 'list';
  /** Parses the text of the environment. Absent where the part that uses the setting parses it. */
  readonly schema?: (platform: NodeJS.Platform) => z.ZodType<unknown, string>;
  /** The text to use while it is not set. */
  readonly default?: string;
  /** Shown while it is not set and has no default. */
  readonly whenUnset?: string;
  readonly choices?: readonly string[];
  /**
   * The window may change it. Settings that decide where a key or a secret is read, what code runs or whom the program talks to
   * are not changeable.
   */
  readonly changeable?: true;
  /** Its value is never shown. */
  readonly secret?: true;
}

const DAY_MINUTES = 24 * 60;

const wholeNumber = () =>
  z
    .string()
    // Fifteen digits fit every number exactly.
    .regex(/^[1-9]\d{0,14}$/, 'must be a whole number from 1; write digits only, or remove it')
    .transform(Number);

const lockAfter = () =>
  wholeNumber().refine(
    (minutes) => minutes <= DAY_MINUTES,
    `must be at most ${DAY_MINUTES} minutes, which is a day; write fewer, or remove it to lock by hand only`,
  );

/** A relative path would depend on the folder that the program is started from. */
const absolutePath = (error: string) => (platform: NodeJS.Platform) =>
  z.string().refine((path) => (platform === 'win32' ? win32 : posix).isAbsolute(path), error);

const oneOf = <const Choice extends string>(choices: readonly [Choice, Choice]) => ({
  fileType: 'text' as const,
  choices,
  schema: () => z.enum(choices, `must be ${choices.join(' or ')}; write one of them, or remove it`),
});

const splitAtCommas = (text: string): readonly string[] => text.split(',').map((item) => item.trim());

/** A Host header: a lower-case name, with a port unless it is the default one. */
const HOST = /^([a-z0-9-]+(\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(:\d{1,5})?$/;

const hostHeaders = () =>
  z
    .string()
    .transform(splitAtCommas)
    .refine(
      (hosts) => hosts.every((host) => HOST.test(host)),
      'must be Host headers such as memory.example:8443, separated by commas; correct it, or remove it',
    );

const fetchHosts = () =>
  z
    .string()
    .transform(splitAtCommas)
    .refine(
      (hosts) => parseHostAllowlist(hosts, '') !== undefined,
      'must be full names of hosts in lower case, such as docs.example.com, or *.example.com for all below it, separated by commas, with a port unless it is 443; correct it, or remove it',
    );

/** An invalid pack name does not stop the start; loading the pack reports it. */
const packNames = () => z.string().transform((text) => splitAtCommas(text).filter((name) => name !== ''));

/** The shortcut needs a modifier besides Shift, or it would swallow a letter in every program. */
const SHORTCUT =
  /^(?=.*(Ctrl|Alt|Cmd|CmdOrCtrl|Super)\+)((Ctrl|Alt|Cmd|CmdOrCtrl|Super|Shift)\+){1,4}([A-Z0-9]|F([1-9]|1\d|2[0-4])|Space)$/;

const shortcut = () =>
  z
    .string()
    .regex(
      SHORTCUT,
      'must be keys such as Ctrl+Shift+M or CmdOrCtrl+Alt+Space: a letter, a digit, F1 to F24 or Space after Ctrl, Alt, Cmd or Super; correct it, or remove it',
    );

const MODEL = /^[a-z0-9][a-z0-9._-]{0,63}(\/[a-z0-9][a-z0-9._-]{0,63})?(:[a-z0-9][a-z0-9._-]{0,63})?$/i;
const CLOUD_MODEL = /[:-]cloud$/i;

const localModel = () =>
  z
    .string()
    .refine(
      (model) => MODEL.test(model) && !CLOUD_MODEL.test(model),
      'must be the name of a model that Ollama runs on this machine, such as nomic-embed-text; correct it, or remove it',
    );

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]']);

/** Facts are sent there to be embedded, so no setting may name another machine. */
function isLoopbackOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'http:' && LOOPBACK.has(url.hostname) && url.href === `${url.origin}/`;
}

const loopbackUrl = () =>
  z
    .string()
    .refine(
      isLoopbackOrigin,
      'must be an address of this machine such as http://127.0.0.1:11434, with nothing after the port; correct it, or remove it',
    )
    .transform((text) => new URL(text));

/** Every setting, under the one name that it has in the environment and in the configuration file (R-HTTP-12). */
export const SETTINGS = {
  HELMDECK_DATA_DIR: {
    help: 'The data folder, an absolute path. Not allowed in the config.json of that folder.',
    fileType: 'text',
    schema: absolutePath('must be an absolute path; write it in full, or remove it to use the default folder'),
  },
  HELMDECK_ADDR: {
    help: 'The address to listen on: 127.0.0.1, localhost or [::1], with a port. Port 0 takes any free port.',
    fileType: 'text',
    schema: () => z.string().transform(parseListenAddress),
    default: DEFAULT_ADDRESS,
    changeable: true,
  },
  HELMDECK_ALLOWED_HOSTS: {
    help: 'More Host headers to accept, for a proxy or tunnel in front of the program.',
    fileType: 'list',
    schema: hostHeaders,
  },
  HELMDECK_MEMORY_KEY: {
    help: 'The key, as 64 hexadecimal digits. Your other programs can see it here; prefer a file.',
    fileType: 'text',
    secret: true,
  },
  HELMDECK_MEMORY_KEY_FILE: {
    help: 'A file that holds the key. Default: the OS keychain, then the file memory.key.',
    fileType: 'text',
  },
  HELMDECK_MEMORY_KEY_NEXT: {
    help: 'The new key, while a key from the environment is rotated.',
    fileType: 'text',
    secret: true,
  },
  HELMDECK_MEMORY_KEY_NEXT_FILE: {
    help: 'A file that holds the new key.',
    fileType: 'text',
  },
  HELMDECK_JWT_SECRET: {
    help: 'The secret that signs tokens, at least 32 bytes. Anyone who has it can create tokens. Default: a secret of the memory itself.',
    fileType: 'text',
    secret: true,
  },
  HELMDECK_JWT_SECRET_FILE: {
    help: 'A file that holds the secret.',
    fileType: 'text',
  },
  HELMDECK_FETCH_HOSTS: {
    help: 'Hosts that the pack http.fetch may read: docs.example.com, or *.example.com for all hosts below it, with a port unless it is 443. Without it, the pack is off.',
    fileType: 'list',
    schema: fetchHosts,
  },
  HELMDECK_GITHUB_TOKEN: {
    help: 'The token for the GitHub packs, where there is no keychain.',
    fileType: 'text',
    secret: true,
  },
  HELMDECK_GITHUB_TOKEN_FILE: {
    help: 'A file that holds the token.',
    fileType: 'text',
  },
  HELMDECK_QUOTA_FACTS: {
    help: 'The number of facts that one subject may store.',
    fileType: 'number',
    schema: wholeNumber,
    default: String(QUOTA.facts),
    changeable: true,
  },
  HELMDECK_QUOTA_BYTES: {
    help: 'The number of bytes that one subject may store, including earlier versions.',
    fileType: 'number',
    schema: wholeNumber,
    default: String(QUOTA.bytes),
    changeable: true,
  },
  HELMDECK_WRITES_PER_MINUTE: {
    help: 'The number of writes per minute and token.',
    fileType: 'number',
    schema: wholeNumber,
    whenUnset: 'no limit',
    changeable: true,
  },
  HELMDECK_SECRETS: {
    help: 'refuse or warn: what happens to a value that looks like a credential.',
    ...oneOf(['refuse', 'warn']),
    default: 'refuse',
    changeable: true,
  },
  HELMDECK_LOCK_AFTER: {
    help: 'Minutes without use after which the memory locks itself, at most 1440.',
    fileType: 'number',
    schema: lockAfter,
    whenUnset: 'never',
    changeable: true,
  },
  HELMDECK_SHORTCUT: {
    help: 'Keys that open the desktop window from anywhere, such as Ctrl+Shift+M.',
    fileType: 'text',
    schema: shortcut,
    whenUnset: 'none',
    changeable: true,
  },
  HELMDECK_PACKS: {
    help: 'Your own packs to load.',
    fileType: 'list',
    schema: packNames,
  },
  HELMDECK_OPENCLAW_QMD: {
    help: 'on or off: off connects OpenClaw without registering the search of this memory with mcporter.',
    ...oneOf(['on', 'off']),
    default: 'on',
    changeable: true,
  },
  HELMDECK_OLLAMA: {
    help: 'The absolute path of the program ollama. Without it, the usual places are searched.',
    fileType: 'text',
    schema: absolutePath(
      'must be the absolute path of the program ollama; write it in full, or remove it to search the usual places',
    ),
  },
  HELMDECK_OLLAMA_URL: {
    help: 'The address of a running Ollama that you can choose to use.',
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

/** Reads a setting or its default. Throws a failure that names the setting if its text is invalid. */
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

/** A setting or a configuration file that the program cannot use. It stops the start. */
export const configFailure = (message: string, cause?: unknown): Failure =>
  new Failure('invalid_config', message, cause === undefined ? {} : { cause });
