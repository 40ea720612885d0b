import { TokenRegistry } from '../src/core/access/token-registry.ts';
import { noteOf } from '../src/core/operations/activity.ts';
import { createCore } from '../src/core/operations/create-core.ts';
import { Finder } from '../src/core/search/finder.ts';
import { systemClock } from '../src/core/time/clock.ts';
import { ours } from './memory.ts';
import { aCaller } from './my-memory.ts';
import { realFacts } from './real-facts.ts';
import { median, quantile, type Result } from './report.ts';

const FACTS = 10_000;
const ROUNDS = 300;
/** A full record of briefs. */
const RECEIPTS = 10_000;

const caller = { ...aCaller, transport: 'rest' };

/**
 * Measures briefs by words in a memory of 10,000 facts, beside a search with the same words in the same run, and the first brief after a
 * start, which reads the receipts of 30 days.
 */
export async function briefCost(): Promise<Result[]> {
  const facts = realFacts(FACTS);
  await using mine = await ours(FACTS, {
    quota: { facts: 2 * FACTS, bytes: 2 ** 40 },
    factOf: (index) => {
      const { key, value, tags, category } = facts[index] ?? facts[0]!;
      const isStanding = index % 100 === 0;
      return { key: `${key}-${index}`, value, tags, category: isStanding ? 'conventions' : category };
    },
  });
  const { store } = mine;
  const keys = facts.slice(0, 5).map(({ key }, index) => `${key}-${index}`);
  for (let from = 0; from < RECEIPTS; from += 250) {
    const notes = Array.from({ length: 250 }, (_, index) =>
      noteOf(caller, 'brief', { keys, moment: 'prompt', session: String(from + index).padStart(8, '0') }),
    );
    await Promise.all(notes.map((note) => store.recordActivity('me', note)));
  }
  const tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
  using finder = new Finder(store);
  using core = createCore({ store, tokens, finder, clock: systemClock });
  const { perform } = core;
  await finder.prepare();

  // The answer to a recall waits until all receipts are read.
  const receipts = await timed(() => perform(caller, 'recall', { key: keys[0] }));

  const promptOf = (round: number): string => {
    const words = (facts[(round * 7919) % FACTS]?.value ?? '').split(' ');
    return `Please change how the ${words[4]} of the ${words[7]} works, so that it uses ${words[9]}`;
  };
  const times = { start: [] as number[], prompt: [] as number[], search: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    const [prompt, session] = [promptOf(round), `session ${round}`];
    times.search.push(await timed(() => perform(caller, 'search', { query: prompt, limit: 60 })));
    times.prompt.push(await timed(() => perform(caller, 'brief', { prompt, session })));
    times.start.push(await timed(() => perform(caller, 'brief', { session: `new ${round}`, folder: '/home/ada/shop' })));
  }
  const searched = median(times.search);
  const beside = (what: string, all: readonly number[], atMost: number): Result => ({
    what: `${what}, of ${FACTS} facts`,
    figure: median(all) / searched,
    unit: 'times a search for 60 facts',
    bar: { atMost },
    from: `${median(all).toFixed(2)} and ${searched.toFixed(2)} ms of the processor, p95 ${quantile(all, 0.95).toFixed(2)} ms`,
  });
  return [
    beside('brief for a prompt, by words', times.prompt, 3),
    beside('brief for the start of a session', times.start, 10),
    {
      what: `reading ${RECEIPTS} receipts after a start`,
      figure: receipts,
      unit: 'ms of the processor, in slices',
      bar: { atMost: 600 },
      from: 'the first recall',
    },
  ];
}

/** Milliseconds of the processor, because other work on the machine does not change them. */
async function timed(step: () => Promise<unknown>): Promise<number> {
  const start = process.cpuUsage();
  await step();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}
