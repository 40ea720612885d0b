import { setTimeout as wait } from 'node:timers/promises';
import { withCliCommand } from '../../../contract/cli-command.ts';
import type { EmbeddingsReport } from '../../../contract/embeddings.ts';
import { Failure } from '../../../contract/failure.ts';
import type { SidecarState } from '../../../contract/status.ts';
import { inMegabytes } from '../../sidecar/models.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { UsageError } from '../errors.ts';
import { exits } from '../exit-codes.ts';
import { columns, escapeControls } from '../layout.ts';
import { planLines, verificationLine } from './connection-lines.ts';

const BETWEEN_MS = 250;
/** Maximum milliseconds that a command waits for Ollama to start. */
const STARTING_MS = 25_000;

const yes = { description: 'Skips the confirmation.' };

export const embeddingsOn = command({
  name: 'embeddings on',
  description: 'Turns on local embeddings with Ollama. After a failure, tries again.',
  options: {
    adopt: { description: 'Uses the Ollama that is already running instead of starting one.' },
    own: { description: 'Starts a separate Ollama instead of the Ollama that you chose with --adopt.' },
  },
  details: ['docs/embeddings.md explains which Ollama is used and how it is isolated.'],
  async run({ options: { adopt, own } }, context) {
    if (adopt && own) throw new UsageError('--adopt and --own cannot be combined. Use only one of these options.');
    await context.call('setEmbeddings', { on: true, ...((adopt || own) && { adopt }) });
    const report = await untilStarted(context);
    await context.printResult(report, () => reportLines(report));
    return exitCode(report.state);
  },
});

export const embeddingsOff = command({
  name: 'embeddings off',
  description: 'Turns embeddings off and stops the separate Ollama. Keeps the model on disk.',
  async run(_typed, context) {
    const report = await context.call('setEmbeddings', { on: false });
    const { clients } = await context.call('clients', {});
    const used = clients.some(
      ({ id, state }) => id === OPENCLAW.client && state !== 'not_connected' && state !== 'not_installed',
    );
    await context.printResult(report, () => [...reportLines(report), ...(used ? ['', SEARCH_BROKEN] : [])]);
  },
});

export const embeddingsStatus = command({
  name: 'embeddings status',
  description: 'Shows the state of embeddings, the Ollama in use and the end of its log.',
  details: ['The exit code is 5 if embeddings are on but not ready.'],
  async run(_typed, context) {
    const report = await context.call('embeddings', {});
    await context.printResult(report, () => [
      ...reportLines(report),
      ...(report.log.length > 0 ? ['', 'Last lines of the Ollama log:', ...report.log.map(escapeControls)] : []),
    ]);
    return exitCode(report.state);
  },
});

export const embeddingsApprove = command({
  name: 'embeddings approve',
  description: 'Shows the Ollama that was found, and approves exactly this program file.',
  options: { yes },
  async run({ options }, context) {
    const { ollama } = await context.call('embeddings', {});
    const { path, size, sha256 } = ollama ?? {};
    if (path === undefined || size === undefined || sha256 === undefined) {
      throw new Failure('not_found', 'There is no Ollama to approve. Search for Ollama with: helmdeck-memory embeddings on');
    }
    const shown = [`path    ${escapeControls(path)}`, `size    ${size.toLocaleString('en-US')} bytes`, `SHA-256 ${sha256}`];
    if (!(await context.confirm(options.yes, () => [...shown, 'Allow Helmdeck Memory to start this Ollama?'].join('\n'))))
      return exits.failed.code;
    await context.call('approveOllama', { hash: sha256 });
    const report = await untilStarted(context);
    await context.printResult(report, () => reportLines(report));
    return exitCode(report.state);
  },
});

export const embeddingsPull = command({
  name: 'embeddings pull',
  description: 'Downloads the model, or resumes a cancelled download.',
  options: { yes },
  details: ['Ctrl+C cancels the download. To resume it, run the command again.'],
  async run({ options }, context) {
    const before = await context.call('embeddings', {});
    if (!(await context.confirm(options.yes, () => `${requirements(before)} Download it?`))) return exits.failed.code;
    await context.call('pullModel', {});
    const report = await untilPulled(context);
    await context.printResult(report, () => reportLines(report));
    return exitCode(report.state);
  },
});

export const embeddingsTest = command({
  name: 'embeddings test',
  description: 'Shows how similar two sentences are, from -1 to 1.',
  arguments: { one: { description: 'The first sentence.' }, other: { description: 'The second sentence.' } },
  examples: ['embeddings test "we ship on Fridays" "when do we deploy?"'],
  async run({ arguments: { one, other } }, context) {
    const answer = await context.call('testEmbeddings', { one, other });
    await context.printResult(answer, () => [
      `${answer.nearness.toFixed(3)} (vectors of ${answer.dimensions} numbers, in ${answer.duration_ms} ms)`,
    ]);
  },
});

export const embeddingsOpenClaw = command({
  name: 'embeddings openclaw',
  description: "Makes OpenClaw's memory search use these embeddings.",
  arguments: { turn: { description: '`on` or `off`.' } },
  options: { show: { description: 'Shows the planned changes without making them.' }, yes },
  details: [
    "First shows the planned changes to OpenClaw's configuration. OpenClaw gets its own token, which allows OpenClaw to create embeddings but not to read a memory. With `off`, the command restores the configuration. If you configured an embeddings provider yourself, or turned it off, the command does not change it.",
  ],
  examples: ['embeddings openclaw on', 'embeddings openclaw off'],
  async run({ arguments: { turn }, options: { show, yes: agreed } }, context) {
    if (turn !== 'on' && turn !== 'off')
      throw new UsageError('The argument must be on or off, for example: embeddings openclaw on');
    if (turn === 'off') {
      const answer = await context.call('disconnectClient', { client: OPENCLAW.client });
      await context.printResult(answer, () => ['The previous memory search of OpenClaw is restored.']);
      return undefined;
    }
    const plan = await context.call('planConnection', OPENCLAW);
    if (show) return context.printResult(plan, () => planLines(plan));
    const { state } = await context.call('embeddings', {});
    if (state.at !== 'ready') {
      throw new Failure(
        'embeddings_unavailable',
        'Embeddings are not ready, so OpenClaw would find nothing. See what is missing with: helmdeck-memory embeddings status',
      );
    }
    if (!agreed) context.hint(...planLines(plan));
    if (!(await context.confirm(agreed, () => 'Make these changes?'))) return exits.failed.code;
    const done = await context.call('connectClient', { ...OPENCLAW, basis: plan.basis });
    const { works } = done.verified;
    await context.printResult(done, () => [
      works ? 'OpenClaw now searches with these embeddings.' : 'OpenClaw is configured to search with these embeddings.',
      verificationLine(done.verified),
      ...(works ? [] : [withCliCommand(`To restore OpenClaw's own search, run: ${RESTORE_SEARCH}`)]),
      ...(done.afterwards === undefined ? [] : [done.afterwards]),
    ]);
    return works ? undefined : exits.failed.code;
  },
});

const OPENCLAW = { client: 'openclaw-embeddings' };
const RESTORE_SEARCH = 'helmdeck-memory embeddings openclaw off';
const SEARCH_BROKEN = `The memory search of OpenClaw uses these embeddings, so the search does not work until you turn embeddings on again or run: ${RESTORE_SEARCH}`;

/** Waits until Ollama has started or failed to start. */
async function untilStarted(context: CommandContext): Promise<EmbeddingsReport> {
  const until = performance.now() + STARTING_MS;
  for (;;) {
    const report = await context.call('embeddings', {});
    if (report.state.at !== 'starting' || performance.now() > until) return report;
    await wait(BETWEEN_MS);
  }
}

/** Prints the progress until the download ends. Ctrl+C cancels the download. */
async function untilPulled(context: CommandContext): Promise<EmbeddingsReport> {
  const { interrupted } = context;
  let printed = '';
  const cancel = (): void => void context.call('cancelPull', {}).catch(() => undefined);
  interrupted.addEventListener('abort', cancel, { once: true });
  try {
    for (;;) {
      const report = await context.call('embeddings', {});
      if (report.state.at !== 'pulling') return report;
      const { done, of } = report.state;
      const line = of === 0 ? 'Looking up the model' : `${inMegabytes(done)} of ${inMegabytes(of)}`;
      if (line !== printed) context.hint(line);
      printed = line;
      await wait(BETWEEN_MS, undefined, { signal: interrupted });
    }
  } finally {
    interrupted.removeEventListener('abort', cancel);
  }
}

function reportLines({ state, ollama, version, model, adopt, adoptable, on }: EmbeddingsReport): string[] {
  const [first, ...rest] = stateLines(state);
  return columns([
    ['embeddings', first ?? ''],
    ...rest.map((line) => ['', line]),
    ['model', model.name],
    ...(adopt && on ? [['ollama', `running at ${adoptable}`]] : []),
    ...(!adopt && ollama ? [['ollama', escapeControls(ollama.path)]] : []),
    ...(!adopt && ollama?.sha256 !== undefined
      ? [['', `SHA-256 ${ollama.sha256}, ${ollama.approved ? 'approved' : 'not approved'}`]]
      : []),
    ...(version === undefined ? [] : [['version', version]]),
  ]);
}

/** Returns a line with the state, then lines that tell the user what to do. */
function stateLines(state: SidecarState): readonly string[] {
  switch (state.at) {
    case 'off':
      return ['off'];
    case 'asleep':
      return ['on, waiting for Helmdeck Memory to start', state.remedy];
    case 'starting':
      return ['starting'];
    case 'unapproved':
      return ['waiting for your approval', state.remedy];
    case 'no_model':
      return ['the model is missing', state.remedy];
    case 'pulling':
      return [`downloading the model, ${inMegabytes(state.done)} of ${inMegabytes(state.of)}`];
    case 'ready':
      return [`ready, with ${READY[state.whose]}`];
    case 'failed':
      return [
        `${state.trouble}: ${state.why}`,
        state.remedy,
        ...(state.retry_at === undefined ? [] : [`The next attempt is at ${state.retry_at}.`]),
      ];
  }
}

const READY = {
  own: 'an Ollama that Helmdeck Memory started',
  adopted: 'the Ollama that you chose',
  bundled: 'the bundled model; Ollama is off',
} as const;

function requirements({ model: { name, disk, memory }, free }: EmbeddingsReport): string {
  const room = (bytes: number | undefined): string => (bytes === undefined ? '' : ` (${inMegabytes(bytes)} free)`);
  if (disk === undefined || memory === undefined)
    return `The size of ${name} is unknown; ${inMegabytes(free.disk ?? 0)} of disk space is free.`;
  return `${name} needs ${inMegabytes(disk)} of disk space${room(free.disk)}, and about ${inMegabytes(memory)} of RAM while it runs${room(free.memory)}.`;
}

const exitCode = ({ at }: SidecarState): number => (at === 'ready' || at === 'off' ? exits.done.code : exits.unavailable.code);
