import { readFileSync } from 'node:fs';
import { withCliCommand } from '../../../contract/cli-command.ts';
import type { ConnectClientInput } from '../../../contract/client.ts';
import { Failure } from '../../../contract/failure.ts';
import { readSecretFile } from '../../../core/crypto/keys/provided-secret.ts';
import { prepareFolder } from '../../../core/file/prepare-folder.ts';
import type { Connections } from '../../connect/connections.ts';
import type { CommandContext } from '../command-context.ts';
import { UsageError } from '../errors.ts';
import { exits } from '../exit-codes.ts';
import { escapeControls } from '../layout.ts';
import { formatDay } from '../times.ts';
import { planLines, verificationLine } from './connection-lines.ts';

/** The choice of hooks in the options. Empty if the options do not mention hooks. */
export type HookChoice = Pick<ConnectClientInput, 'hooks' | 'trust_hooks'>;

interface ServerOptions {
  readonly client: string;
  /** The address as the user typed it. */
  readonly server: string;
  /** Path of a file with certificates of authorities. */
  readonly ca: string | undefined;
  readonly tokenFile: string | undefined;
  readonly show: boolean;
  readonly yes: boolean;
  readonly choice: HookChoice;
}

/** Longer than any token. */
const MAX_TOKEN_BYTES = 16 * 1024;

/**
 * Connects an agent on this machine to a server on another machine. Does not open a memory on this machine, because there may be
 * none. Writes nothing before the server has accepted the token.
 */
export async function connectToServer(
  { client, server, ca, tokenFile, show, yes, choice }: ServerOptions,
  context: CommandContext,
): Promise<number | void> {
  const { parseAuthorities, parseServerUrl, parseToken, probeServer } = await import('../../connect/team-server.ts');
  const url = parseServerUrl(server);
  const target = { url, ...(ca !== undefined && { ca: parseAuthorities(readAuthorities(ca)) }) };
  const connections = await localConnections(context);
  const plan = await connections.plan({ client, subject: 'me', ...choice });
  if (show) return context.printResult(plan, () => planLines(plan));
  if (!yes) context.hint(...planLines(plan));
  if (!(await context.confirm(yes, () => `Connect ${client} to ${url}?`))) return exits.failed.code;
  const token = parseToken(await readToken(tokenFile, context));
  await probeServer(target, token.token);
  const { folder } = context.config;
  prepareFolder(folder);
  const done = await connections.connectToServer({ client, basis: plan.basis, ...choice }, target, token);
  await context.printResult({ ...done, server: url }, () => [
    `${client} is connected to the memory "${escapeControls(done.subject)}" at ${url}.`,
    verificationLine(done.verified),
    ...(token.client === client
      ? []
      : [`The token names the client "${escapeControls(token.client)}", so everything that ${client} writes has this name.`]),
    `The token expires on ${formatDay(done.expires_at)}.`,
    ...(done.afterwards === undefined ? [] : [done.afterwards]),
    withCliCommand(`To undo this, run: helmdeck-memory disconnect ${client}`),
  ]);
}

function readAuthorities(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new Failure('invalid_input', 'The file of --ca cannot be read. Check its path and permissions.', { cause });
  }
}

/** Reads the token from a file, a hidden prompt or standard input. It is never an argument, because other users can see those. */
async function readToken(file: string | undefined, { terminal }: CommandContext): Promise<string> {
  if (file !== undefined) return readSecretFile(file, '--token-file');
  if (terminal.inputIsTerminal) return terminal.askHidden('Token (hidden): ');
  const text = await terminal.readText(MAX_TOKEN_BYTES);
  if (text.trim() !== '') return text;
  throw new UsageError('There is no token. Pipe it to standard input, or name its file with --token-file.');
}

/** Returns the URL of the server to which an agent is connected. Undefined if it is not connected to a server. */
export async function serverOf(client: string, { config: { folder } }: CommandContext): Promise<string | undefined> {
  const { Records } = await import('../../connect/records.ts');
  return CLIENT_ID.test(client) ? new Records(folder).read(client)?.server : undefined;
}

const CLIENT_ID = /^[a-z][a-z0-9-]*$/;

/** Manages the agents of this machine without opening a memory. */
export async function localConnections({ config: { folder }, environment, host }: CommandContext): Promise<Connections> {
  const { connectionsWithoutMemory } = await import('../../connect/without-memory.ts');
  return connectionsWithoutMemory({ environment, platform: host.platform, home: () => host.home() }, folder, () => host.now());
}
