import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import { TOKEN_DAYS } from '../../../contract/limits.ts';
import { DEFAULT_SCOPES, type TOKEN_SCOPES } from '../../../contract/names.ts';
import { writeDurableFile } from '../../../core/file/files.ts';
import type { CommandContext } from '../command-context.ts';
import { type Command, command } from '../command.ts';
import { UsageError } from '../errors.ts';
import { escapeControls } from '../layout.ts';
import { formatDay, formatMinute, formatTimeLeft } from '../times.ts';
import { given, parseCount } from '../values.ts';

const VALID_CLIENT_NAME = /^[A-Za-z0-9 ._-]{1,64}$/;
/** Client names that `mcp --client` accepts. The name becomes part of a file name. */
const VALID_FILE_NAME = /^[A-Za-z0-9_-][A-Za-z0-9 ._-]{0,63}$/;

export const tokenMint = command({
  name: 'token mint',
  description: 'Creates a token that gives one client access to the memory.',
  arguments: { name: { description: 'A name for the token, such as "OpenClaw on the laptop".' } },
  options: {
    client: {
      value: '<name>',
      description: 'Name of the client, shown with everything that the client writes. Default: the token name.',
    },
    subject: {
      value: '<name>',
      description: 'The memory that the token gives access to. Tokens with the same subject share a memory. Default: me.',
    },
    scope: {
      value: '<scope>',
      description: `What the token allows: ${DEFAULT_SCOPES.join(', ')}, admin. Can be repeated. Default: all but admin.`,
      many: true,
    },
    days: { value: '<number>', description: `Days until the token expires (at most ${TOKEN_DAYS}).` },
    quarantine: { description: 'Lets everything that the client writes wait in the Inbox until you accept it.' },
    'no-quarantine': { description: 'Lets the client write without waiting.' },
    keep: {
      description:
        'Saves the token to clients/<client>.token in the data folder, where `mcp --client` reads it, instead of printing it.',
    },
  },
  details: [
    'The token is printed once and not stored, unless --keep saves it. Standard output contains only the token.',
    'Without either option, a client that `connect` recognises writes without waiting, and so does a token with the scope admin. Every other client is quarantined.',
  ],
  examples: [
    'token mint claude-code --keep',
    'token mint codex --keep',
    'token mint "nightly report" --scope memory:read --days 30',
  ],
  async run({ arguments: { name }, options }, context) {
    const { client, subject, scope, days, keep, quarantine, 'no-quarantine': free } = options;
    if (quarantine && free) throw new UsageError('Use either --quarantine or --no-quarantine.');
    const until = parseCount(days, '--days', TOKEN_DAYS);
    const program = client ?? (VALID_CLIENT_NAME.test(name) ? name : undefined);
    if (keep && !VALID_FILE_NAME.test(program ?? '')) {
      throw new UsageError(
        'To save the token with --keep, name its client with --client <name>. The name must start with a letter, a digit, "_" or "-".',
      );
    }
    // The cast is safe, because the memory rejects an unknown scope and lists the valid scopes.
    const scopes = scope.length > 0 ? (scope as (typeof TOKEN_SCOPES)[number][]) : undefined;
    const made = await context.call('mintToken', {
      name,
      ...given({ client: program, subject, scopes, days: until, quarantine: quarantine || free ? quarantine : undefined }),
    });
    if (keep) {
      const { token, ...rest } = made;
      const file = keepToken(context.config.folder, made.client, token);
      await context.printResult({ ...rest, file }, () => [`The token was saved to ${file}.`]);
    } else await context.printResult(made, () => [made.token]);
    if (made.quarantined && made.scopes.some((each) => each !== 'memory:read')) context.hint(QUARANTINED);
    context.hint(
      `This token is for the client ${escapeControls(made.client)} and expires on ${formatDay(made.expires_at)}. ${keep ? 'Revoke' : 'It will not be shown again. Revoke'} it with: helmdeck-memory token revoke ${made.id}`,
    );
  },
});

const QUARANTINED =
  'Everything that this client writes waits until you accept it with: helmdeck-memory inbox. To create a token without this, add --no-quarantine.';

export const tokenList = command({
  name: 'token list',
  description: 'Lists the tokens that this memory created and that are not revoked.',
  async run(_typed, context) {
    const answer = await context.call('tokens', {});
    await context.printTable(
      answer,
      answer.tokens.map(({ id, name, client, subject, scopes, expires_at: end, last_used_at: used, paused, quarantined }) => [
        id,
        escapeControls(name),
        client,
        subject,
        scopes.join(' '),
        formatTimeLeft(end, context.now),
        used === undefined ? 'never used' : `used ${formatMinute(used)}`,
        [...(paused ? ['paused'] : []), ...(quarantined ? ['quarantined'] : [])].join(', '),
      ]),
      'There are no tokens. Create one with: helmdeck-memory token mint <name>',
    );
  },
});

const id = { description: 'Id of the token, as shown by `token list`.' };

export const tokenRevoke = command({
  name: 'token revoke',
  description: 'Revokes a token permanently, with immediate effect.',
  arguments: { id: { ...id, optional: true } },
  options: {
    subject: { value: '<name>', description: 'Revokes all tokens of this subject, for example when a person leaves a team.' },
    unrecorded: {
      description:
        'Accepts an id that is not in the list: the `jti` of a token that another program signed with the same secret.',
    },
  },
  examples: ['token revoke 5f2c9a71e0b3d846', 'token revoke --subject ada'],
  async run({ arguments: typed, options: { subject, unrecorded } }, context) {
    if ((typed.id === undefined) === (subject === undefined))
      throw new UsageError('Name one token by its id, or all tokens of a subject with --subject <name>.');
    if (subject !== undefined) return revokeAll(subject, context);
    const answer = await context.call('revokeToken', { id: typed.id ?? '', unrecorded });
    await context.printResult(answer, () => [`Revoked ${escapeControls(answer.id)}.`]);
  },
});

async function revokeAll(subject: string, context: CommandContext): Promise<void> {
  const { tokens } = await context.call('tokens', {});
  const revoked = tokens.filter((token) => token.subject === subject);
  if (revoked.length === 0)
    throw new Failure('not_found', 'There are no tokens of this subject. List the tokens with: helmdeck-memory token list');
  for (const { id: one } of revoked) await context.call('revokeToken', { id: one, unrecorded: false });
  await context.printResult({ subject, revoked: revoked.map((token) => token.id) }, () =>
    revoked.map((token) => `Revoked ${escapeControls(token.id)}, ${escapeControls(token.name)}.`),
  );
}

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

/** Saves the token in the file that `mcp --client` reads. */
function keepToken(folder: string, client: string, token: string): string {
  const clients = join(folder, 'clients');
  mkdirSync(clients, { recursive: true, mode: 0o700 });
  const file = join(clients, `${client}.token`);
  writeDurableFile(file, `${token}\n`);
  return file;
}
