import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { TOKEN_DAYS, TOKEN_SCOPES } from '../../../contract/limits.ts';
import { writeDurableFile } from '../../../core/file/files.ts';
import { command } from '../command.ts';
import { columns, escapeControls } from '../layout.ts';
import { formatDay, formatMinute, formatTimeLeft } from '../times.ts';
import { UsageError } from '../usage-error.ts';
import { parseCount } from '../values.ts';

/** What may stand as the name of a program. */
const CLIENT = /^[A-Za-z0-9 ._-]{1,64}$/;
/** The same, as the bridge takes it for the name of a file. */
const FILE = /^[A-Za-z0-9_-][A-Za-z0-9 ._-]{0,63}$/;

export const tokenMint = command({
  name: 'token mint',
  says: 'Makes a token, with which one program reaches the memory.',
  arguments: { name: { says: 'What you call the token, such as "OpenClaw on the laptop".' } },
  options: {
    client: { value: '<name>', says: 'The program, as it is shown beside what it writes; the name of the token unless told.' },
    subject: { value: '<name>', says: 'Whose memory it opens; me unless told. Tokens with one subject share one memory.' },
    scope: {
      value: '<scope>',
      says: `What it may do, once for each: ${TOKEN_SCOPES.join(', ')}; all but admin unless told.`,
      many: true,
    },
    days: { value: '<number>', says: `Days until it expires, at most ${TOKEN_DAYS}.` },
    keep: { says: 'Puts it into clients/<client>.token in the data folder, for mcp --client, and does not show it.' },
  },
  more: [
    'The token is shown once and kept nowhere, unless --keep puts it where the program itself can hand it to a client. In a pipe there is nothing but the token.',
  ],
  examples: [
    'token mint claude-code --keep',
    'token mint codex --keep',
    'token mint "nightly report" --scope memory:read --days 30',
  ],
  async run({ arguments: { name }, options: { client, subject, scope, days, keep } }, desk) {
    const until = parseCount(days, '--days', TOKEN_DAYS);
    const program = client ?? (CLIENT.test(name) ? name : undefined);
    if (keep && !FILE.test(program ?? '')) {
      throw new UsageError(
        'To keep the token, name its client with letters, digits, "_" or "-" at the beginning: --client <name>.',
      );
    }
    const made = await (
      await desk.memory()
    ).call('mintToken', {
      name,
      ...(program !== undefined && { client: program }),
      ...(subject !== undefined && { subject }),
      // Another scope is for the memory to refuse, with the scopes that there are.
      ...(scope.length > 0 && { scopes: scope as (typeof TOKEN_SCOPES)[number][] }),
      ...(until !== undefined && { days: until }),
    });
    if (keep) {
      const { token, ...rest } = made;
      const file = keepToken(desk.config.folder, made.client, token);
      await desk.printResult({ ...rest, file }, () => [`The token is kept in ${file}.`]);
    } else await desk.printResult(made, () => [made.token]);
    if (desk.json) return;
    desk.terminal.printToStderr(
      `This token is for ${escapeControls(made.client)} and lives until ${formatDay(made.expires_at)}. ${keep ? 'Revoke' : 'It is not shown again; revoke'} it with: helmdeck-memory token revoke ${made.id}`,
    );
  },
});

export const tokenList = command({
  name: 'token list',
  says: 'Lists the tokens that were made here and not revoked.',
  async run(_typed, desk) {
    const answer = await (await desk.memory()).call('tokens', {});
    await desk.printResult(answer, () =>
      columns(
        answer.tokens.map(({ id, name, client, subject, scopes, expires_at: end, last_used_at: used, paused }) => [
          id,
          escapeControls(name),
          client,
          subject,
          scopes.join(' '),
          formatTimeLeft(end, desk.now()),
          used === undefined ? 'never used' : `used ${formatMinute(used)}`,
          paused ? 'paused' : '',
        ]),
      ),
    );
    if (!desk.json && answer.tokens.length === 0)
      desk.terminal.printToStderr('There are no tokens; make one with: helmdeck-memory token mint <name>');
  },
});

export const tokenRevoke = command({
  name: 'token revoke',
  says: 'Makes a token useless for good, at once.',
  arguments: { id: { says: 'Its id in the list of tokens.' } },
  options: { unrecorded: { says: 'For a token that was made elsewhere with the same secret: its jti.' } },
  async run({ arguments: { id }, options: { unrecorded } }, desk) {
    const answer = await (await desk.memory()).call('revokeToken', { id, unrecorded });
    await desk.printResult(answer, () => [`Revoked ${escapeControls(answer.id)}.`]);
  },
});

const id = { says: 'Its id in the list of tokens.' };

export const tokenPause = command({
  name: 'token pause',
  says: 'Refuses a token until token resume lets it in again.',
  arguments: { id },
  async run({ arguments: typed }, desk) {
    const answer = await (await desk.memory()).call('pauseToken', { id: typed.id, paused: true });
    await desk.printResult(answer, () => [`Paused ${escapeControls(answer.id)}.`]);
  },
});

export const tokenResume = command({
  name: 'token resume',
  says: 'Lets a token in again that was paused.',
  arguments: { id },
  async run({ arguments: typed }, desk) {
    const answer = await (await desk.memory()).call('pauseToken', { id: typed.id, paused: false });
    await desk.printResult(answer, () => [`Let in again ${escapeControls(answer.id)}.`]);
  },
});

/** Where the bridge looks for it. */
function keepToken(folder: string, client: string, token: string): string {
  const clients = join(folder, 'clients');
  mkdirSync(clients, { recursive: true, mode: 0o700 });
  const file = join(clients, `${client}.token`);
  writeDurableFile(file, `${token}\n`);
  return file;
}
