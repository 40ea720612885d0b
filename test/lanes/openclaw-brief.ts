import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type PersonMemory, readMemory } from '../../bench/brief/memories.ts';
import type { Caller } from '../../src/core/access/caller.ts';
import type { Perform } from '../../src/core/operations/perform.ts';
import { sharedWords } from '../core/search/meaning/shared-words.ts';
import type { Checks } from './faults/checks.ts';
import type { RecordingModel } from './recording-model.ts';

/** The line that begins every brief. */
const HEADER = 'From Helmdeck Memory:';
const BRIEF_BYTES = 1000;
const PATIENCE_MS = 180_000;
/** How many of the prompts must get the fact that they need, and how many of the others must get nothing. */
const BARS = { sharing: 0.95, other: 0.7, silent: 0.9 };

interface Agent {
  readonly program: string;
  readonly environment: Record<string, string>;
  readonly home: string;
  readonly model: RecordingModel;
}

interface Deps extends Agent {
  readonly checks: Checks;
  readonly perform: Perform;
  /** Connects OpenClaw with these hooks. */
  readonly connect: (hooks: ('session' | 'prompt')[]) => Promise<unknown>;
  /** Resolves when the meanings of all facts can be compared. */
  readonly ready: () => Promise<void>;
}

/** The models of OpenClaw's configuration: only the recording one. */
export function modelSettings(url: string): { models: object; model: object } {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const about = { reasoning: false, input: ['text'], contextWindow: 200_000, maxTokens: 8000, cost };
  const models = [{ id: 'recording', name: 'recording', ...about }];
  const recording = { baseUrl: `${url}/v1`, apiKey: 'none', api: 'openai-completions', models };
  return { models: { providers: { recording } }, model: { primary: 'recording/recording' } };
}

/** Sends a message through the gateway. Returns the first request to the model. */
export async function askAgent(
  { program, environment, home, model }: Agent,
  message: string,
  session: string = randomUUID(),
): Promise<string> {
  model.begin([]);
  const args = ['agent', '--agent', 'main', '--session-id', session, '--message', message, '--json'];
  const child = spawn(program, args, { env: environment, cwd: home, stdio: 'ignore', timeout: PATIENCE_MS });
  await once(child, 'close');
  return model.requests[0] ?? '';
}

/** Asks again if nothing was said, because the plugin gives up on a busy machine. */
async function askBriefed(agent: Agent, message: string, session?: string): Promise<string> {
  let request = '';
  for (let attempt = 0; attempt < 6 && briefIn(request) === ''; attempt += 1) request = await askAgent(agent, message, session);
  return request;
}

const callerOf = (client: string): Caller => ({
  subject: 'me',
  client,
  transport: 'lane',
  token: '',
  scopes: new Set(['memory:read', 'memory:write']),
});

/** Stores the facts of one person: 200 of OpenClaw's own, and then those that other agents learned lately. */
async function plant({ facts }: PersonMemory, perform: Perform): Promise<void> {
  for (const isPlanted of [false, true])
    for (const { key, value, category, tags, client, planted } of facts)
      if (planted === isPlanted)
        await perform(callerOf(planted ? client : 'openclaw'), 'remember', { key, value, category, tags: [...tags] });
}

/** A running gateway loads a changed configuration within seconds. */
async function untilBriefed(agent: Agent, isBriefed: boolean): Promise<void> {
  for (let attempt = 0; attempt < 20; attempt += 1) if ((await askAgent(agent, 'Hello')).includes(HEADER) === isBriefed) return;
  throw new Error('The gateway did not load the changed configuration.');
}

/** The facts that a request shows: the brief begins at its header and ends with the user's message. */
const briefIn = (request: string): string => (request.includes(HEADER) ? request.slice(request.indexOf(HEADER)) : '');

const timesIn = (text: string, value: string): number =>
  text.split(JSON.stringify(JSON.stringify(value)).slice(1, -1)).length - 1;

/**
 * Facts of other agents are in the first request of a new session, without a question for them, and nothing is said about prompts
 * that need nothing.
 */
export async function briefLane(deps: Deps): Promise<void> {
  const { checks, perform, connect, ready } = deps;
  const { check } = checks;
  const memory = readMemory('held');
  await plant(memory, perform);
  await ready();
  // OpenClaw's agents have one workspace, which is no folder of these projects.
  const needed = memory.needing.filter(({ needs }) => needs.planted && needs.tags.length === 0);
  const [sharing, other] = [true, false].map((shares) =>
    needed.filter(({ text, needs }) => sharedWords(text, needs).length > 0 === shares).slice(0, 10),
  ) as [typeof needed, typeof needed];
  for (const [what, prompts, bar] of [
    ['share a word with the fact that they need', sharing, BARS.sharing],
    ['share no word with it', other, BARS.other],
  ] as const) {
    const missing: string[] = [];
    for (const { text, needs } of prompts) {
      const request = await askBriefed(deps, text);
      const brief = briefIn(request);
      const times = timesIn(brief, needs.value);
      if (times !== 1) missing.push(`${times} times: ${text}: ${brief.slice(0, 1500)}`);
      if (brief.split(HEADER).length > 2) check('a request contains one brief', false, request);
    }
    const share = 1 - missing.length / prompts.length;
    console.log(`   ${prompts.length - missing.length} of ${prompts.length} prompts that ${what} got it`);
    check(`prompts that ${what} get it in the first request, once`, prompts.length === 10 && share >= bar, missing);
  }
  const session = randomUUID();
  const requests = [await askBriefed(deps, 'Hello', session), await askBriefed(deps, 'Thanks', session)];
  check(
    'each turn of a session has the brief once',
    requests.every((request) => request.split(HEADER).length === 2),
    requests,
  );
  await connect(['prompt']);
  await untilBriefed(deps, false);
  const told: string[] = [];
  const needless = memory.needless.slice(0, 40);
  for (const { text } of needless) {
    const brief = briefIn(await askAgent(deps, text));
    if (brief !== '') told.push(`${text}: ${brief.slice(0, BRIEF_BYTES)}`);
  }
  console.log(`   ${needless.length - told.length} of ${needless.length} prompts that need nothing got nothing`);
  check('prompts that need nothing get nothing', 1 - told.length / needless.length >= BARS.silent, told);
  await connect([]);
  check('without hooks, nothing is said', !(await askAgent(deps, sharing[0]?.text ?? '')).includes(HEADER), 'it was said');
  await connect(['session', 'prompt']);
  await untilBriefed(deps, true);
}
