import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readMemory } from '../../bench/brief/memories.ts';
import { sharedWords } from '../core/search/meaning/shared-words.ts';
import { Checks } from './faults/checks.ts';
import { AGENTS, type HookAgent, type RunningAgent, type Turn } from './hooks-agents.ts';
import { HookMemory, needleOf } from './hooks-memory.ts';
import { RecordingModel } from './recording-model.ts';

/**
 * Runs the real Claude Code, Codex and Gemini CLI against recorded models, in a memory of 220 facts of which another client stored
 * 20 lately, and looks for the facts in the first model request. By default runs a tenth of the prompts; HELMDECK_LANE_HOOKS=all
 * runs all of them.
 */
const isWhole = process.env['HELMDECK_LANE_HOOKS'] === 'all';
const only = process.env['HELMDECK_LANE_AGENT'];

/** Sessions to try on a busy machine. */
const SESSIONS = 3;

const checks = new Checks();
const { check } = checks;

const person = readMemory('held');
const planted = person.needing.filter(({ needs }) => needs.planted);
const isShared = ({ text, needs }: (typeof planted)[number]): boolean => sharedWords(text, needs).length > 0;
/** One prompt for each planted fact: every second one shares a word with its fact. */
const needing = [...new Set(planted.map(({ needs }) => needs))].flatMap((fact, place) => {
  const own = planted.filter(({ needs }) => needs === fact);
  const wanted = own.find((prompt) => isShared(prompt) === (place % 2 === 0)) ?? own[0];
  return wanted ? [wanted] : [];
});
const needless = person.needless.slice(0, 40);

const part = <T>(all: readonly T[], count: number): readonly T[] =>
  isWhole ? all : all.filter((_, place) => place % Math.ceil(all.length / count) === 0);

const homes = mkdtempSync(join(tmpdir(), 'helmdeck-hooks-'));
const memory = await HookMemory.open(person.facts);
await using model = await RecordingModel.open();

await checks.through(
  async () => {
    for (const agent of AGENTS) if (only === undefined || agent.client === only) await tryAgent(agent);
  },
  async () => {
    await memory[Symbol.asyncDispose]();
    rmSync(homes, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  },
);

async function tryAgent(agent: HookAgent): Promise<void> {
  const home = mkdtempSync(join(homes, `${agent.client}-`));
  const running = await agent.prepare({ home, model, memory });
  const name = agent.client;
  const folderOf = (project: string | undefined): string => {
    const folder = join(home, 'work', project ?? 'elsewhere');
    mkdirSync(join(folder, '.git'), { recursive: true });
    return folder;
  };
  const first = async (prompt: string, project: string | undefined, resumes = false): Promise<Turn> =>
    running.ask({ prompt, folder: folderOf(project), resumes });
  try {
    check(`${name}: is connected with hooks that run`, running.hooks === 'on', running);

    const found: Record<'shared' | 'none', [number, number]> = { shared: [0, 0], none: [0, 0] };
    const missed: unknown[] = [];
    let twice = 0;
    for (const prompt of part(needing, 4)) {
      const { text, needs } = prompt;
      const turn = await first(text, projectOf(needs.tags));
      const times = timesIn(turn.requests[0], needleOf(needs.value));
      const row = found[isShared(prompt) ? 'shared' : 'none'];
      row[0] += times > 0 ? 1 : 0;
      row[1] += 1;
      twice += times > 1 ? 1 : 0;
      if (times === 0) missed.push({ text, key: needs.key, briefs: turn.briefs, retries: turn.retries, output: turn.output });
    }
    console.log(`   ${name}: found ${found.shared.join(' of ')} with a shared word, ${found.none.join(' of ')} without`);
    check(`${name}: a fact that shares a word is in the first request`, isEnough(found.shared, 0.95), missed);
    // A tenth of the prompts is too few to judge how often a fact without a shared word is found.
    if (isWhole) check(`${name}: a fact that shares no word is in the first request`, isEnough(found.none, 0.7), missed);
    check(`${name}: no fact is in a first request twice`, twice === 0, twice);

    const spoke: unknown[] = [];
    const all = part(needless, 3);
    let silent = 0;
    for (const { text } of all) {
      const turn = await first(text, undefined);
      const said = turn.briefs.filter(({ prompt, text: brief }) => prompt !== undefined && brief !== '');
      silent += said.length === 0 ? 1 : 0;
      if (said.length > 0) spoke.push({ text, said });
    }
    console.log(`   ${name}: silent for ${silent} of ${all.length} prompts that need nothing`);
    check(`${name}: the hook of the prompt is silent if nothing is needed`, silent >= 0.9 * all.length, spoke);

    await trySession(agent, running, folderOf('elsewhere'));
  } finally {
    await running.disconnect();
  }
}

/** A fact is in a session once: in its first turn, after a resume, and after compaction. */
async function trySession({ client, compact }: HookAgent, running: RunningAgent, folder: string): Promise<void> {
  const { text, needs } = needing.find((prompt) => isShared(prompt) && projectOf(prompt.needs.tags) === undefined) ?? needing[0]!;
  const needle = needleOf(needs.value);
  const turns = async (): Promise<Readonly<Record<string, Turn>>> => {
    const told = await running.ask({ prompt: text, folder, resumes: false });
    // The same prompt again at once would be taken for that of a second hook.
    const resumed = await running.ask({ prompt: `${text} again`, folder, resumes: true });
    return {
      told,
      resumed,
      ...(compact && { compacted: await compact(running, { prompt: `${text} now`, folder, resumes: true }) }),
    };
  };
  const timesOf = (all: Awaited<ReturnType<typeof turns>>): Record<string, number> =>
    Object.fromEntries(Object.entries(all).map(([name, { requests }]) => [name, timesIn(requests.at(-1), needle)]));
  // A hook gives up on a busy machine, and is not asked again within a session.
  let last = await turns();
  for (let attempt = 1; attempt < SESSIONS && Object.values(timesOf(last)).includes(0); attempt += 1) last = await turns();
  const times = timesOf(last);
  check(`${client}: a new session has the fact once`, times['told'] === 1, last['told']);
  check(`${client}: a resumed session has the fact once`, times['resumed'] === 1, last['resumed']);
  if (compact) check(`${client}: after compaction, the session has the fact once`, times['compacted'] === 1, last['compacted']);
}

/** Rounds down, because of ten prompts 95 percent would allow no miss: one of them may miss its fact. */
function isEnough([some, all]: readonly [number, number], share: number): boolean {
  return some >= Math.floor(share * all);
}

function projectOf(tags: readonly string[]): string | undefined {
  return tags.find((tag) => tag.startsWith('project:'))?.slice('project:'.length);
}

function timesIn(request: string | undefined, needle: string): number {
  return (request ?? '').split(needle).length - 1;
}
