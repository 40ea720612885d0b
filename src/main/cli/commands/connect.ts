import { withCliCommand } from '../../../contract/cli-command.ts';
import type { CaptureChoice, ClientRow, ConnectionPlan, HookEvent, PackOffer } from '../../../contract/client.ts';
import { HOOK_EVENTS } from '../../../contract/names.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { UsageError } from '../errors.ts';
import { exits } from '../exit-codes.ts';
import { escapeControls } from '../layout.ts';
import { formatMinute } from '../times.ts';
import { given } from '../values.ts';
import { connectToServer, type HookChoice, localConnections, serverOf } from './connect-server.ts';
import { planLines, verificationLine } from './connection-lines.ts';

export const connect = command({
  name: 'connect',
  description: 'Connects an agent, such as claude-code; without a name, lists all agents.',
  arguments: { client: { description: 'Id of the agent in the list of agents.', optional: true } },
  options: {
    subject: { value: '<name>', description: 'Name of a separate memory for the agent. Default: `me`, your own memory.' },
    packs: {
      value: '<packs>',
      description: 'Packs that the agent is offered: `all`, `none`, or names separated by commas. Default: `all`.',
    },
    hooks: {
      value: '<events>',
      description: 'Events at which the agent asks for a brief: `session`, `prompt`, or both, separated by commas.',
    },
    'no-hooks': { description: 'Adds no hooks to the agent, and removes those of an earlier connection.' },
    'trust-hooks': {
      description: 'Records in Codex that you have reviewed the hooks that are shown. Otherwise Codex asks you.',
    },
    capture: {
      value: '<choice>',
      description:
        'Facts from your prompts to the agent: `off`, `inbox` (wait until you accept them) or `store` (stored at once). Default: `off`.',
    },
    quarantine: { description: 'Lets everything that the agent writes wait in the Inbox until you accept it.' },
    'no-quarantine': { description: 'Lets the agent write without waiting. Without either, an earlier choice stays.' },
    server: {
      value: '<url>',
      description: 'Address of a server on another machine, such as `https://memory.example:7443`. Asks for its token.',
    },
    ca: {
      value: '<file>',
      description: 'With `--server`: certificates of authorities to trust, in addition to those of the system.',
    },
    'token-file': {
      value: '<file>',
      description: 'With `--server`: file that contains the token. Without it, the token is typed, or read from standard input.',
    },
    show: { description: 'Shows the planned changes without making them.' },
    try: { description: 'Tests an existing connection, without changing anything.' },
    list: { description: 'Lists the supported agents and their state.' },
    yes: { description: 'Changes the configuration without asking.' },
  },
  details: [
    "First shows the planned change to the agent's configuration: one entry, which starts the bridge of Helmdeck Memory, and the hooks. Nothing else in the configuration changes. The agent gets its own token, which is stored in the data folder and never in a configuration file or on a command line.",
    'Hooks put the facts that matter before the model without being asked: at the start of a session, and for each prompt except in Cursor and Visual Studio Code. Claude Desktop has no hooks. They are on by default. They have a token of their own, which can only ask for briefs. If you connect an agent again without --hooks or --no-hooks, your earlier choice stays.',
    'With `--packs` or `--capture`, an agent that is already connected stays connected, and only this choice changes. An agent reads the descriptions of its packs in every conversation, so offer it only the packs that it needs. The command `packs` lists the packs.',
    'With `--server`, the agent uses a memory on another machine, with a token that the admin of the server created. The certificate of the server is always verified, and nothing is written before the server has accepted the token. Address and token are stored in the data folder.',
    'If you connect an agent again, it gets a new token, and a removed entry is restored. After the change, the connection is tested with the command that the agent starts. Helmdeck Memory must be running for the test.',
  ],
  examples: [
    'connect',
    'connect claude-code --show',
    'connect claude-code',
    'connect codex --subject work --yes',
    'connect codex --trust-hooks',
    'connect gemini-cli --no-hooks',
    'connect codex --packs none',
    'connect codex --server https://memory.example:7443',
  ],
  async run({ arguments: { client }, options }, context) {
    const { subject, packs, capture, server, ca, 'token-file': tokenFile, show, try: tried, list, yes } = options;
    const quarantine = quarantineIn(options);
    const choice = hookChoiceIn(options);
    if (server === undefined && (ca !== undefined || tokenFile !== undefined))
      throw new UsageError('--ca and --token-file can be used only with --server.');
    if (server !== undefined) {
      if (
        client === undefined ||
        subject !== undefined ||
        packs !== undefined ||
        capture !== undefined ||
        quarantine !== undefined ||
        tried ||
        list
      )
        throw new UsageError(
          '--server needs the id of an agent, and cannot be used with --subject, --packs, --capture, --quarantine, --try or --list: the token decides what the agent gets.',
        );
      return connectToServer({ client, server, ca, tokenFile, show, yes, choice }, context);
    }
    if (client === undefined || list) return listClients(context);
    if (tried) {
      const remote = await serverOf(client, context);
      const verified = await (remote === undefined
        ? context.call('verifyClient', { client })
        : (await localConnections(context)).verify({ client }));
      await context.printResult({ client, ...verified }, () => [verificationLine(verified)]);
      return verified.works ? exits.done.code : exits.failed.code;
    }
    const offer = packs === undefined ? undefined : { client, packs: packsIn(packs) };
    const captureChoice = capture === undefined ? undefined : { client, ...captureOf(capture) };
    const choose = async () => ({
      offered: offer && (await context.call('offerPacks', offer)),
      captured: captureChoice && (await context.call('setCapture', captureChoice)),
    });
    if ((offer ?? captureChoice) && !show && Object.keys(choice).length === 0 && (await isConnected(context, client))) {
      const { offered, captured } = await choose();
      return context.printResult({ ...offered, ...captured }, () => [
        ...(offered ? [offerLine(offered)] : []),
        ...(captured ? [captureLine(captured)] : []),
      ]);
    }
    const wanted = { client, ...(subject !== undefined && { subject }), ...choice };
    const plan = await context.call('planConnection', wanted);
    if (show) return context.printResult(plan, () => [...planLines(plan), ...linkOf(plan)]);
    if (!yes) context.hint(...planLines(plan));
    if (!(await context.confirm(yes, () => `Connect ${client}?`))) return exits.failed.code;
    // Change the packs first, so that the agent's first session has the right tools.
    const { offered, captured } = await choose();
    const done = await context.call('connectClient', { ...wanted, basis: plan.basis, ...given({ quarantine }) });
    await context.printResult(done, () => [
      `${client} is connected to the memory "${escapeControls(done.subject)}".`,
      verificationLine(done.verified),
      ...(quarantine ? ['Everything that it writes waits until you accept it with: helmdeck-memory inbox'] : []),
      ...(offered ? [offerLine(offered)] : []),
      ...(captured ? [captureLine(captured)] : []),
      ...(done.afterwards === undefined ? [] : [done.afterwards]),
      withCliCommand(`To undo this, run: helmdeck-memory disconnect ${client}`),
    ]);
    return undefined;
  },
});

export const disconnect = command({
  name: 'disconnect',
  description: 'Disconnects an agent and restores its configuration.',
  arguments: { client: { description: 'Id of the agent, as listed by the `connect` command.' } },
  details: [
    "A file that has not changed since the agent was connected is restored byte for byte. In a file that has changed, only Helmdeck Memory's entry is removed. The agent's facts are not deleted.",
  ],
  examples: ['disconnect claude-code'],
  async run({ arguments: { client } }, context) {
    const server = await serverOf(client, context);
    const answer = await (server === undefined
      ? context.call('disconnectClient', { client })
      : (await localConnections(context)).disconnect({ client }));
    await context.printResult(answer, () => [
      `${client} is disconnected.`,
      ...answer.files.map(({ path, as_before: asBefore }) =>
        asBefore
          ? `${escapeControls(path)} was restored.`
          : `${escapeControls(path)} has changed since the agent was connected, so only Helmdeck Memory's entry was removed.`,
      ),
      ...(server === undefined
        ? []
        : [`The token is still valid on ${server}. If you no longer need it, ask the admin of the server to revoke it.`]),
    ]);
  },
});

interface HookOptions {
  readonly hooks: string | undefined;
  readonly 'no-hooks': boolean;
  readonly 'trust-hooks': boolean;
}

function hookChoiceIn({ hooks, 'no-hooks': none, 'trust-hooks': trust }: HookOptions): HookChoice {
  if (none && (hooks !== undefined || trust)) throw new UsageError('--no-hooks cannot be used with --hooks or --trust-hooks.');
  const events = hooks?.split(',').map((event) => event.trim());
  if (events && !events.every(isHookEvent))
    throw new UsageError(`--hooks must be ${HOOK_EVENTS.join(', ')}, or both, separated by commas.`);
  return {
    ...(none ? { hooks: [] } : events && { hooks: events }),
    ...(trust && { trust_hooks: true }),
  };
}

/** Undefined if the owner makes no choice, so that an earlier choice stays. */
function quarantineIn({
  quarantine,
  'no-quarantine': free,
}: {
  quarantine: boolean;
  'no-quarantine': boolean;
}): boolean | undefined {
  if (quarantine && free) throw new UsageError('Use either --quarantine or --no-quarantine.');
  return quarantine || free ? quarantine : undefined;
}

const isHookEvent = (event: string): event is HookEvent => HOOK_EVENTS.some((one) => one === event);

const packsIn = (text: string): PackOffer['packs'] =>
  text === 'all' ? 'all' : text === 'none' ? [] : text.split(',').map((name) => name.trim());

const CAPTURES: Readonly<Record<string, Omit<CaptureChoice, 'client'>>> = {
  off: { capture: false, accept: false },
  inbox: { capture: true, accept: false },
  store: { capture: true, accept: true },
};

function captureOf(text: string): Omit<CaptureChoice, 'client'> {
  const choice = Object.hasOwn(CAPTURES, text) ? CAPTURES[text] : undefined;
  if (choice) return choice;
  throw new UsageError('--capture must be off, inbox or store.');
}

const captureLine = ({ client, capture, accept }: CaptureChoice): string => {
  if (!capture) return `No facts are made from your prompts to ${client}.`;
  return accept
    ? `Lasting statements in your prompts to ${client} are stored as facts.`
    : `Lasting statements in your prompts to ${client} wait until you accept them with: helmdeck-memory inbox`;
};

const offerLine = ({ client, packs }: PackOffer): string =>
  `${client} is offered ${packs === 'all' ? 'all packs' : packs.length === 0 ? 'no packs' : packs.join(', ')}.`;

/** Whether the agent is connected, or is not in the list of agents but has a token. */
async function isConnected(context: CommandContext, client: string): Promise<boolean> {
  const row = (await context.call('clients', {})).clients.find(({ id }) => id === client);
  if (row) return row.state === 'connected';
  const { tokens } = await context.call('tokens', {});
  return tokens.some((token) => token.client === client);
}

async function listClients(context: CommandContext): Promise<undefined> {
  const answer = await context.call('clients', {});
  const { clients } = answer;
  await context.printTable(
    answer,
    clients.map((row) => [row.id, stateOf(row), row.version ?? '', usedOf(row), row.subject ?? '']),
  );
  context.hint(
    ...clients.flatMap(({ name, state, why, hooks }) =>
      [why, state === 'connected' ? hooks?.why : undefined].flatMap((one) =>
        one === undefined ? [] : [`${name}: ${escapeControls(one)}`],
      ),
    ),
  );
  return undefined;
}

const STATES: Readonly<Record<ClientRow['state'], string>> = {
  not_installed: 'not installed',
  not_connected: 'not connected',
  connected: 'connected',
  differs: 'has a different entry with the name of Helmdeck Memory',
  wiped: 'lost its entry; connect it again',
  broken: 'does not work',
  no_token: 'has no token; connect it again',
};

const HOOK_STATES: Readonly<Record<NonNullable<ClientRow['hooks']>['state'], string>> = {
  on: '',
  off: ', no hooks',
  waits_for_review: ', hooks wait for your review',
  differs: ', hooks do not work; connect it again',
};

const stateOf = ({ state, token, transport, packs, capture, accept, server, hooks }: ClientRow): string => {
  if (state !== 'connected') return STATES[state];
  const hooked = hooks ? HOOK_STATES[hooks.state] : '';
  if (server !== undefined) return `${STATES[state]} (${transport}) to ${server}${hooked}`;
  return [
    `${STATES[state]} (${transport})`,
    ...(token?.paused ? [', paused'] : []),
    ...(token?.quarantined ? [', quarantined'] : []),
    ...(capture ? [`, facts from prompts: ${accept ? 'store' : 'inbox'}`] : []),
    ...(packs ? [`, packs: ${packs.join(', ') || 'none'}`] : []),
    hooked,
  ].join('');
};

function usedOf({ token }: ClientRow): string {
  if (!token) return '';
  return token.last_used_at === undefined ? 'never used' : `used ${formatMinute(token.last_used_at)}`;
}

const linkOf = ({ link }: ConnectionPlan): string[] =>
  link === undefined ? [] : ['To connect another profile of this agent later, open:', escapeControls(link)];
