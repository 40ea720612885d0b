import { withCliCommand } from '../../../contract/cli-command.ts';
import type { ClientRow, ConnectionPlan, ClientVerification } from '../../../contract/client.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { columns, escapeControls } from '../layout.ts';
import { formatMinute } from '../times.ts';

export const connect = command({
  name: 'connect',
  says: 'Connects an agent, such as claude-code; without a name, lists them.',
  arguments: { client: { says: 'Which one, by the id in the list.', optional: true } },
  options: {
    subject: { value: '<name>', says: 'Gives it a memory of its own under this name; unless told it shares yours, me.' },
    show: { says: 'Shows what would be changed, and changes nothing.' },
    try: { says: 'Changes nothing, and tries whether one that is connected comes through.' },
    list: { says: 'Lists the agents that can be connected, and how they stand.' },
    yes: { says: 'Does not ask before its configuration is changed.' },
  },
  more: [
    "What changes in the agent's configuration is shown first: one entry, which starts our bridge. Everything else there stays as it is. Its token is its own and lies in the data folder; no configuration and no command line holds one.",
    'Connected once more it gets a new token and its entry back, which mends one that was wiped. It is tried at once, by what the agent itself would start; the program has to run for that.',
  ],
  examples: ['connect', 'connect claude-code --show', 'connect claude-code', 'connect codex --subject work --yes'],
  async run({ arguments: { client }, options: { subject, show, try: tried, list, yes } }, desk) {
    if (client === undefined || list) return listClients(desk);
    const memory = await desk.memory();
    if (tried) return told(desk, client, await memory.call('verifyClient', { client }));
    const wanted = { client, ...(subject !== undefined && { subject }) };
    const plan = await memory.call('planConnection', wanted);
    if (show) return desk.printResult(plan, () => [...planLines(plan), ...linkOf(plan)]);
    if (!yes && !desk.json) desk.terminal.printToStderr(...planLines(plan));
    if (!(await desk.confirm(yes, () => `Connect ${client}?`))) return exits.failed.code;
    const done = await memory.call('connectClient', { ...wanted, basis: plan.basis });
    await desk.printResult(done, () => [
      `${client} is connected to the memory of ${escapeControls(done.subject)}.`,
      verificationLine(done.verified),
      ...(done.afterwards === undefined ? [] : [done.afterwards]),
      withCliCommand(`Take it back with: helmdeck-memory disconnect ${client}`),
    ]);
    return undefined;
  },
});

export const disconnect = command({
  name: 'disconnect',
  says: 'Takes an agent off again, and puts back what its configuration was.',
  arguments: { client: { says: 'Which one, by the id that connect lists.' } },
  more: [
    'A file that nobody changed since gets its old bytes back; from another one only our entry is taken out. What the agent wrote stays.',
  ],
  examples: ['disconnect claude-code'],
  async run({ arguments: { client } }, desk) {
    const answer = await (await desk.memory()).call('disconnectClient', { client });
    await desk.printResult(answer, () => [
      `${client} is not connected any more.`,
      ...answer.files.map(({ path, as_before: asBefore }) =>
        asBefore
          ? `${escapeControls(path)} is as it was before.`
          : `${escapeControls(path)} was changed since; only our entry was taken out.`,
      ),
    ]);
  },
});

async function listClients(desk: CommandContext): Promise<undefined> {
  const answer = await (await desk.memory()).call('clients', {});
  await desk.printResult(answer, () =>
    columns(answer.clients.map((row) => [row.id, stateOf(row), row.version ?? '', usedOf(row), row.subject ?? ''])),
  );
  if (!desk.json)
    for (const { name, why } of answer.clients)
      if (why !== undefined) desk.terminal.printToStderr(`${name}: ${escapeControls(why)}`);
  return undefined;
}

async function told(desk: CommandContext, client: string, verified: ClientVerification): Promise<number> {
  await desk.printResult({ client, ...verified }, () => [verificationLine(verified)]);
  return verified.works ? exits.done.code : exits.failed.code;
}

export const verificationLine = ({ works, why = '', tools }: ClientVerification): string =>
  works
    ? `Tried: it comes through${tools === 0 ? '' : `, and is offered ${tools} tools`}.`
    : `Tried: it does not come through yet. ${escapeControls(why)}`;

const STATES: Readonly<Record<ClientRow['state'], string>> = {
  not_installed: 'not on this machine',
  not_connected: 'not connected',
  connected: 'connected',
  differs: 'has another entry of our name',
  wiped: 'wiped its entry; connect it again',
  broken: 'does not work',
  no_token: 'has no token any more; connect it again',
};

const stateOf = ({ state, token, transport }: ClientRow): string => {
  if (state !== 'connected') return STATES[state];
  return `${STATES[state]} (${transport})${token?.paused ? ', paused' : ''}`;
};

function usedOf({ token }: ClientRow): string {
  if (!token) return '';
  return token.last_used_at === undefined ? 'never used' : `used ${formatMinute(token.last_used_at)}`;
}

const linkOf = ({ link }: ConnectionPlan): string[] =>
  link === undefined ? [] : ['For another profile of it, once it is connected, open:', escapeControls(link)];

/** What would be done, as it is shown before. */
export const planLines = ({ files, commands, afterwards }: ConnectionPlan): string[] => [
  ...files.flatMap(({ path, created, lines, holds_token: holdsToken }) => [
    `${escapeControls(path)}${created ? ' (new)' : ''}`,
    ...lines.map(({ sign, text }) => `  ${sign} ${escapeControls(text)}`),
    ...(holdsToken ? ['It comes to hold the token, and then nobody but you may read it.'] : []),
  ]),
  ...(files.length === 0 ? ['Nothing changes in its configuration; it gets a new token.'] : []),
  ...commands.map(({ program, args }) => `Done by: ${[program, ...args].map(escapeControls).join(' ')}`),
  ...(afterwards === undefined ? [] : [afterwards]),
];
