import { BRIEF } from '../src/contract/limits.ts';
import { PROJECT_TAG } from '../src/core/brief/fact-place.ts';
import { PROMPT_FACTS, selectForPrompt, selectForSession } from '../src/core/brief/select.ts';
import { tagHint, writeBrief } from '../src/core/brief/text.ts';
import { sharedWords } from '../test/core/search/meaning/shared-words.ts';
import { type Half, type MemoryFact, NOW, type PersonMemory, type Prompt, readMemory } from './brief/memories.ts';
import { embed, MeaningSuite } from './meaning-suite.ts';
import { report, type Result } from './report.ts';

/**
 * Measures which facts a brief shows, with the bundled model and by words alone: how often the fact that a prompt needs is in the
 * brief for the session or for the prompt, and how often nothing is said about a prompt that needs nothing. Tune on the person that
 * was seen; the person that was held back judges. The bar for a common word is below the goal of 95 percent, which 21 prompts cannot
 * tell from 90.
 */
const halves: readonly Half[] = process.argv.includes('--seen') ? ['seen'] : ['seen', 'held'];
/** The client that asks, which did not store the planted facts. */
const ASKING = { seen: 'claude-code', held: 'cursor' };
/** The number of prompts without a need in the bars. The others are measured too. */
const FIRST = 40;

interface Shown {
  readonly session: readonly string[];
  readonly prompt: readonly string[];
  /** What the brief for the prompt shows if there was none for the session. */
  readonly promptAlone: readonly string[];
}

interface Setting {
  readonly half: Half;
  readonly suite: MeaningSuite;
  readonly comparesMeanings: boolean;
  /** Whether the planted facts were stored lately. */
  readonly lately: boolean;
}

async function show({ half, suite, comparesMeanings }: Setting, prompt: string, project: string | undefined): Promise<Shown> {
  const deps = { finder: suite, store: { now: () => NOW } };
  const signal = new AbortController().signal;
  const request = { namespace: { subject: 'me' }, client: ASKING[half], project, yieldTurn: () => Promise.resolve() };
  const write = (facts: Parameters<typeof writeBrief>[0], ending?: string): string[] =>
    writeBrief(facts, { bytes: BRIEF.bytes, now: NOW, ending }).shown.map(({ key }) => key);
  const session = write(await selectForSession(deps, request), project === undefined ? undefined : tagHint(project));
  const found = await selectForPrompt(deps, { ...request, prompt, comparesMeanings, signal });
  const untold = found.filter(({ key }) => !session.includes(key));
  return { session, prompt: write(untold.slice(0, PROMPT_FACTS)), promptAlone: write(found.slice(0, PROMPT_FACTS)) };
}

const projectOf = ({ tags }: MemoryFact): string | undefined => tags[0]?.slice(PROJECT_TAG.length);

/** A prompt about a project is typed in its folder, and any other prompt in the folder of some project. */
function folderOf({ facts }: PersonMemory, { needs }: Prompt, place: number): string | undefined {
  const projects = [...new Set(facts.map(projectOf).filter((name) => name !== undefined))].toSorted();
  return (needs && projectOf(needs)) ?? projects[place % projects.length];
}

const percent = (some: number, all: number): number => (100 * some) / all;

async function measure(memory: PersonMemory, setting: Setting): Promise<Result[]> {
  const { half, comparesMeanings, lately } = setting;
  const by = `${lately ? '' : 'stored long ago, '}${comparesMeanings ? 'with meanings' : 'by words'}, ${half}`;
  const bars = lately && comparesMeanings && half === 'held';
  const run = async (prompts: readonly Prompt[]) => {
    const all: (Shown & { readonly asked: Prompt })[] = [];
    for (const [place, asked] of prompts.entries())
      all.push({ ...(await show(setting, asked.text, folderOf(memory, asked, place))), asked });
    return all;
  };
  const needing = await run(memory.needing);
  const rows = [
    { what: 'planted, shares a word', some: needing.filter(({ asked }) => asked.needs?.planted && isShared(asked)), bar: 90 },
    { what: 'planted, shares none', some: needing.filter(({ asked }) => asked.needs?.planted && !isShared(asked)), bar: 70 },
    { what: 'all, shares a word', some: needing.filter(({ asked }) => isShared(asked)) },
    { what: 'all, shares none', some: needing.filter(({ asked }) => !isShared(asked)) },
  ];
  const found = rows.map(({ what, some, bar }): Result => {
    const count = (keys: (shown: Shown) => readonly string[]): number =>
      percent(some.filter((each) => keys(each).includes(each.asked.needs?.key ?? '')).length, some.length);
    const [session, prompt] = [count((each) => each.session), count((each) => each.promptAlone)];
    return {
      what: `needed fact shown, ${what}, ${by}`,
      figure: count((each) => [...each.session, ...each.prompt]),
      unit: 'percent',
      ...(bars && bar !== undefined && { bar: { atLeast: bar } }),
      from: `${some.length} prompts, ${session.toFixed(0)} by the session's brief, ${prompt.toFixed(0)} by the prompt's brief alone`,
    };
  });
  if (!lately) return found.slice(0, 2);
  const [nothing, elsewhere] = [await run(memory.needless), await run(memory.elsewhere)];
  const silent = (what: string, some: readonly Shown[], bar?: number): Result => ({
    what: `silent, ${what}, ${by}`,
    figure: percent(some.filter(({ promptAlone }) => promptAlone.length === 0).length, some.length),
    unit: 'percent',
    ...(bars && bar !== undefined && { bar: { atLeast: bar } }),
    from: `${some.length} prompts`,
  });
  if (process.argv.includes('--list')) list([...needing, ...nothing, ...elsewhere]);
  return [
    ...found,
    silent(`first ${FIRST} that need nothing`, nothing.slice(0, FIRST), 90),
    silent('all that need nothing', nothing, 90),
    silent('work that no fact is about', elsewhere),
    {
      what: `facts shown for a prompt that needs one, ${by}`,
      figure: needing.reduce((sum, { prompt }) => sum + prompt.length, 0) / needing.length,
      unit: 'facts',
      from: `and ${(elsewhere.reduce((sum, { prompt }) => sum + prompt.length, 0) / elsewhere.length).toFixed(1)} for other work`,
    },
  ];
}

const isShared = ({ text, needs }: Prompt): boolean => needs !== undefined && sharedWords(text, needs).length > 0;

/** Prints the prompts for which a brief was wrong. */
function list(all: readonly (Shown & { readonly asked: Prompt })[]): void {
  for (const { asked, session, prompt, promptAlone } of all) {
    if (asked.needs ? [...session, ...prompt].includes(asked.needs.key) : promptAlone.length === 0) continue;
    console.log(`${asked.needs ? `- ${asked.needs.key}` : '+'} | ${asked.text} | ${promptAlone.join(' ')}`);
  }
}

const results: Result[] = [];
for (const half of halves) {
  for (const lately of [true, false]) {
    const memory = readMemory(half, { lately });
    const { facts, needing, needless, elsewhere } = memory;
    await embed([...needing, ...needless, ...elsewhere].map(({ text }) => text));
    const suite = await MeaningSuite.over(facts);
    for (const comparesMeanings of lately ? [true, false] : [true])
      results.push(...(await measure(memory, { half, suite, comparesMeanings, lately })));
  }
}
process.exitCode = report(results) ? 0 : 1;
