import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { TOKEN_DAYS, TOKEN_SCOPES } from '../../../contract/limits.ts';
import { writeDurableFile } from '../../../core/file/files.ts';
import { type Command, command } from '../command.ts';
import { UsageError } from '../errors.ts';
import { escapeControls } from '../layout.ts';
import { formatDay, formatMinute, formatTimeLeft } from '../times.ts';
import { given, parseCount } from '../values.ts';

/** Valid client names. */
const CLIENT = /^[A-Za-z0-9 ._-]{1,64}$/;
/** Client names that the bridge accepts as a file name. */
const FILE = /^[A-Za-z0-9_-][A-Za-z0-9 ._-]{0,63}$/;

export const tokenMint = command({
  name: 'token mint',
  description: 'Creates a token that gives one client access to the memory.',
  arguments: { name: { description: 'A name for the token, such as "OpenClaw on the laptop".' } },
  options: {
    client: { value: '<name>', description: 'The client name, shown with everything it writes. Default: the token name.' },
    subject: {
      value: '<name>',
      description: 'The memory that it gives access to. Tokens with the same subject share a memory. Default: me.',
    },
    scope: {
      value: '<scope>',
      description: `What the token allows: ${TOKEN_SCOPES.join(', ')}. Can be repeated. Default: all except admin.`,
      many: true,
    },
    days: { value: '<number>', description: `Days until it expires (at most ${TOKEN_DAYS}).` },
    keep: {
      description: 'Saves the token to clients/<client>.token in the data folder, for mcp --client, instead of showing it.',
    },
  },
  details: [
    'The token is shown once and not stored, unless --keep saves it for mcp --client. Only the token itself goes to standard output.',
  ],
  examples: [
    'token mint claude-code --keep',
    'token mint codex --keep',
    'token mint "nightly report" --scope memory:read --days 30',
  ],
  async run({ arguments: { name }, options: { client, subject, scope, days, keep } }, context) {
    const until = parseCount(days, '--days', TOKEN_DAYS);
    const program = client ?? (CLIENT.test(name) ? name : undefined);
    if (keep && !FILE.test(program ?? '')) {
      throw new UsageError(
        'To keep the token, name its client with --client <name>. The name must start with a letter, a digit, "_" or "-".',
      );
    }
    // The memory rejects any other scope and lists the valid ones.
    const scopes = scope.length > 0 ? (scope as (typeof TOKEN_SCOPES)[number][]) : undefined;
    const made = await context.call('mintToken', { name, ...given({ client: program, subject, scopes, days: until }) });
    if (keep) {
      const { token, ...rest } = made;
      const file = keepToken(context.config.folder, made.client, token);
      await context.printResult({ ...rest, file }, () => [`The token was saved to ${file}.`]);
    } else await context.printResult(made, () => [made.token]);
    context.hint(
      `This token is for the client ${escapeControls(made.client)} and expires on ${formatDay(made.expires_at)}. ${keep ? 'Revoke' : 'It will not be shown again. Revoke'} it with: helmdeck-memory token revoke ${made.id}`,
    );
  },
});

export const tokenList = command({
  name: 'token list',
  description: 'Lists tokens that were created here and not revoked.',
  async run(_typed, context) {
    const answer = await context.call('tokens', {});
    await context.printTable(
      answer,
      answer.tokens.map(({ id, name, client, subject, scopes, expires_at: end, last_used_at: used, paused }) => [
        id,
        escapeControls(name),
        client,
        subject,
        scopes.join(' '),
        formatTimeLeft(end, context.now),
        used === undefined ? 'never used' : `used ${formatMinute(used)}`,
        paused ? 'paused' : '',
      ]),
      'There are no tokens. Create one with: helmdeck-memory token mint <name>',
    );
  },
});

const id = { description: 'The id of the token in the list.' };

export const tokenRevoke = command({
  name: 'token revoke',
  description: 'Revokes a token permanently, with immediate effect.',
  arguments: { id },
  options: { unrecorded: { description: 'The id is the jti of a token that was created elsewhere with the same secret.' } },
  async run({ arguments: typed, options: { unrecorded } }, context) {
    const answer = await context.call('revokeToken', { id: typed.id, unrecorded });
    await context.printResult(answer, () => [`Revoked ${escapeControls(answer.id)}.`]);
  },
});

/** Pausing and resuming differ only in their words. */
const pauseCommand = (word: 'pause' | 'resume', description: string): Command =>
  command({
    name: `token ${word}`,
    description,
    arguments: { id },
    async run({ arguments: typed }, context) {
      const answer = await context.call('pauseToken', { id: typed.id, paused: word === 'pause' });
      await context.printResult(answer, () => [`${word === 'pause' ? 'Paused' : 'Resumed'} ${escapeControls(answer.id)}.`]);
    },
  });

export const tokenPause = pauseCommand('pause', 'Blocks a token until you resume it.');
export const tokenResume = pauseCommand('resume', 'Unblocks a paused token.');

/** Saves the token where the bridge looks for it. */
function keepToken(folder: string, client: string, token: string): string {
  const clients = join(folder, 'clients');
  mkdirSync(clients, { recursive: true, mode: 0o700 });
  const file = join(clients, `${client}.token`);
  writeDurableFile(file, `${token}\n`);
  return file;
}
