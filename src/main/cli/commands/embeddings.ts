import { setTimeout as wait } from 'node:timers/promises';
import { withCliCommand } from '../../../contract/cli-command.ts';
import type { EmbeddingsReport } from '../../../contract/embeddings.ts';
import { Failure } from '../../../contract/failure.ts';
import type { SidecarState } from '../../../contract/status.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { columns, escapeControls } from '../layout.ts';
import type { MemoryConnection } from '../memory-connection.ts';
import { UsageError } from '../usage-error.ts';
import { planLines, verificationLine } from './connect.ts';

const BETWEEN_MS = 250;
/** An Ollama that starts is waited for so long; then it is told how it stands. */
const STARTING_MS = 25_000;

const yes = { says: 'Does not ask first.' };

export const embeddingsOn = command({
  name: 'embeddings on',
  says: 'Turns on embeddings of this machine, by Ollama; tries anew what was not well.',
  options: {
    adopt: { says: 'By the Ollama that runs already, instead of one of our own.' },
    own: { says: 'By one of our own, after --adopt.' },
  },
  more: ['docs/embeddings.md tells which Ollama is taken, and what keeps it apart.'],
  async run({ options: { adopt, own } }, desk) {
    if (adopt && own) throw new UsageError('--adopt and --own exclude each other; give one of them.');
    const memory = await desk.memory();
    await memory.call('setEmbeddings', { on: true, ...((adopt || own) && { adopt }) });
    const report = await settled(memory);
    await desk.printResult(report, () => linesOf(report));
    return exitOf(report.state);
  },
});

export const embeddingsOff = command({
  name: 'embeddings off',
  says: 'Turns embeddings off, and ends our Ollama; its model stays for the next time.',
  async run(_typed, desk) {
    const memory = await desk.memory();
    const report = await memory.call('setEmbeddings', { on: false });
    const { clients } = await memory.call('clients', {});
    const left = clients.some(
      ({ id, state }) => id === OPENCLAW.client && state !== 'not_connected' && state !== 'not_installed',
    );
    await desk.printResult(report, () => [...linesOf(report), ...(left ? ['', WITHOUT_THEM] : [])]);
  },
});

export const embeddingsStatus = command({
  name: 'embeddings status',
  says: 'Says where embeddings stand, which Ollama serves them, and what it said last.',
  async run(_typed, desk) {
    const report = await (await desk.memory()).call('embeddings', {});
    await desk.printResult(report, () => [
      ...linesOf(report),
      ...(report.log.length > 0 ? ['', 'The end of its log:', ...report.log.map(escapeControls)] : []),
    ]);
    return exitOf(report.state);
  },
});

export const embeddingsApprove = command({
  name: 'embeddings approve',
  says: 'Shows the Ollama that was found, and lets exactly this one be started.',
  options: { yes },
  async run({ options }, desk) {
    const memory = await desk.memory();
    const { ollama } = await memory.call('embeddings', {});
    const { path, size, sha256 } = ollama ?? {};
    if (path === undefined || size === undefined || sha256 === undefined) {
      throw new Failure('not_found', 'No Ollama was found that could be approved; look with: helmdeck-memory embeddings on');
    }
    const shown = [`path    ${escapeControls(path)}`, `size    ${size.toLocaleString('en-US')} bytes`, `SHA-256 ${sha256}`];
    if (!(await desk.confirm(options.yes, () => [...shown, 'Let the program start exactly this?'].join('\n'))))
      return exits.failed.code;
    await memory.call('approveOllama', { hash: sha256 });
    const report = await settled(memory);
    await desk.printResult(report, () => linesOf(report));
    return exitOf(report.state);
  },
});

export const embeddingsPull = command({
  name: 'embeddings pull',
  says: 'Fetches the model, or goes on where that was cancelled.',
  options: { yes },
  more: ['Ctrl+C cancels it; what is there stays for the next time.'],
  async run({ options }, desk) {
    const memory = await desk.memory();
    const before = await memory.call('embeddings', {});
    if (!(await desk.confirm(options.yes, () => `${needs(before)} Fetch it?`))) return exits.failed.code;
    await memory.call('pullModel', {});
    const report = await fetched(memory, desk);
    await desk.printResult(report, () => linesOf(report));
    return exitOf(report.state);
  },
});

export const embeddingsTest = command({
  name: 'embeddings test',
  says: 'Says how near two sentences are, from -1 to 1.',
  arguments: { one: { says: 'A sentence.' }, other: { says: 'Another one.' } },
  examples: ['embeddings test "we ship on Fridays" "when do we deploy?"'],
  async run({ arguments: { one, other } }, desk) {
    const answer = await (await desk.memory()).call('testEmbeddings', { one, other });
    await desk.printResult(answer, () => [
      `${answer.nearness.toFixed(3)} (vectors of ${answer.dimensions} numbers, in ${answer.duration_ms} ms)`,
    ]);
  },
});

export const embeddingsOpenClaw = command({
  name: 'embeddings openclaw',
  says: "Has OpenClaw's own memory search by meaning, through these embeddings.",
  arguments: { turn: { says: 'on or off.' } },
  options: { show: { says: 'Shows what would be changed, and changes nothing.' }, yes },
  more: [
    'What changes in its configuration is shown first. It gets a token of its own, which is good for embedding and opens nobody’s memory. Turned off again, its configuration is as it was. A provider of your own, or none on purpose, is left as it is.',
  ],
  examples: ['embeddings openclaw on', 'embeddings openclaw off'],
  async run({ arguments: { turn }, options: { show, yes: agreed } }, desk) {
    if (turn !== 'on' && turn !== 'off') throw new UsageError('Say on or off: embeddings openclaw on');
    const memory = await desk.memory();
    if (turn === 'off') {
      const answer = await memory.call('disconnectClient', { client: OPENCLAW.client });
      await desk.printResult(answer, () => ['OpenClaw searches as it did before.']);
      return undefined;
    }
    const plan = await memory.call('planConnection', OPENCLAW);
    if (show) return desk.printResult(plan, () => planLines(plan));
    const { state } = await memory.call('embeddings', {});
    if (state.at !== 'ready') {
      throw new Failure(
        'embeddings_unavailable',
        'There are no embeddings yet, and OpenClaw would find nothing through them; see what is missing with: helmdeck-memory embeddings status',
      );
    }
    if (!agreed && !desk.json) desk.terminal.printToStderr(...planLines(plan));
    if (!(await desk.confirm(agreed, () => 'Change it so?'))) return exits.failed.code;
    const done = await memory.call('connectClient', { ...OPENCLAW, basis: plan.basis });
    const { works } = done.verified;
    await desk.printResult(done, () => [
      works ? 'OpenClaw searches by meaning, through these embeddings.' : 'OpenClaw was told to search through these embeddings.',
      verificationLine(done.verified),
      ...(works ? [] : [withCliCommand(`To have it search as before: ${PUT_BACK}`)]),
      ...(done.afterwards === undefined ? [] : [done.afterwards]),
    ]);
    return works ? undefined : exits.failed.code;
  },
});

const OPENCLAW = { client: 'openclaw-embeddings' };
const PUT_BACK = 'helmdeck-memory embeddings openclaw off';
const WITHOUT_THEM = `OpenClaw's own memory search goes through them, and is unavailable until they are on again, or until: ${PUT_BACK}`;

/** Until it stands somewhere for a while. */
async function settled(memory: MemoryConnection): Promise<EmbeddingsReport> {
  const until = performance.now() + STARTING_MS;
  for (;;) {
    const report = await memory.call('embeddings', {});
    if (report.state.at !== 'starting' || performance.now() > until) return report;
    await wait(BETWEEN_MS);
  }
}

async function fetched(memory: MemoryConnection, { interrupted, json, terminal }: CommandContext): Promise<EmbeddingsReport> {
  let told = '';
  const cancel = (): void => void memory.call('cancelPull', {}).catch(() => undefined);
  interrupted.addEventListener('abort', cancel, { once: true });
  try {
    for (;;) {
      const report = await memory.call('embeddings', {});
      if (report.state.at !== 'pulling') return report;
      const { done, of } = report.state;
      const line = of === 0 ? 'Looking for it' : `${inMegabytes(done)} of ${inMegabytes(of)}`;
      if (line !== told && !json) terminal.printToStderr(line);
      told = line;
      await wait(BETWEEN_MS, undefined, { signal: interrupted });
    }
  } finally {
    interrupted.removeEventListener('abort', cancel);
  }
}

function linesOf({ state, ollama, version, model, adopt, adoptable, on }: EmbeddingsReport): string[] {
  const [first, ...rest] = inWords(state);
  return [
    ...columns([
      ['embeddings', first ?? ''],
      ...rest.map((line) => ['', line]),
      ['model', model.name],
      ...(adopt && on ? [['ollama', `the one at ${adoptable}`]] : []),
      ...(!adopt && ollama ? [['ollama', escapeControls(ollama.path)]] : []),
      ...(!adopt && ollama?.sha256 !== undefined
        ? [['', `SHA-256 ${ollama.sha256}, ${ollama.approved ? 'approved' : 'not approved'}`]]
        : []),
      ...(version === undefined ? [] : [['version', version]]),
    ]),
  ];
}

/** What it is, and what to do about it. */
function inWords(state: SidecarState): readonly string[] {
  switch (state.at) {
    case 'off':
      return ['off'];
    case 'asleep':
      return ['on, and waiting for the program', state.remedy];
    case 'starting':
      return ['starting'];
    case 'unapproved':
      return ['waiting for you', state.remedy];
    case 'no_model':
      return ['without the model', state.remedy];
    case 'pulling':
      return [`fetching the model, ${inMegabytes(state.done)} of ${inMegabytes(state.of)}`];
    case 'ready':
      return [`ready, by ${state.whose === 'own' ? 'an Ollama of our own' : 'the Ollama that you chose'}`];
    case 'failed':
      return [
        `${state.trouble}: ${state.why}`,
        state.remedy,
        ...(state.retry_at === undefined ? [] : [`It is tried again at ${state.retry_at}.`]),
      ];
  }
}

function needs({ model: { name, disk, memory }, free }: EmbeddingsReport): string {
  const room = (bytes: number | undefined): string => (bytes === undefined ? '' : ` (${inMegabytes(bytes)} are free)`);
  if (disk === undefined || memory === undefined)
    return `How much ${name} takes is not known; ${inMegabytes(free.disk ?? 0)} of the disk are free.`;
  return `${name} takes ${inMegabytes(disk)} of the disk${room(free.disk)}, and about ${inMegabytes(memory)} of memory while it works${room(free.memory)}.`;
}

const inMegabytes = (bytes: number): string => `${Math.round(bytes / 1_000_000).toLocaleString('en-US')} MB`;

/** For a script: whether texts can be embedded, or nobody wants that. */
const exitOf = ({ at }: SidecarState): number => (at === 'ready' || at === 'off' ? exits.done.code : exits.unavailable.code);
