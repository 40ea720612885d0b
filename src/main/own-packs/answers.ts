import * as z from 'zod';
import { asFailure, type Failure } from '../../contract/failure.ts';
import { later } from '../../contract/later.ts';
import type { ExecutionContext, PackMemory } from '../../core/packs/pack.ts';
import type { Heard, Said } from './messages.ts';

/** Twice what the runtime of a pack has under way. */
const AT_ONCE = 32;

const StoreOptions = later(() =>
  z.strictObject({
    ttl: z.number().exactOptional(),
    category: z.string().exactOptional(),
    tags: z.array(z.string().trim().min(1).max(64)).max(32).exactOptional(),
  }),
);

/** What a pack may ask its memory, and nothing else can be asked. */
const questions: Record<string, (memory: PackMemory, given: unknown[]) => Promise<unknown>> = {
  async store(memory, given) {
    const [key, value, options] = z.tuple([z.string(), z.unknown(), StoreOptions()]).parse(given);
    await memory.store(key, value, options);
  },
  recall: (memory, given) => memory.recall(...z.tuple([z.string()]).parse(given)),
  list: (memory, given) => memory.list(...z.tuple([z.string()]).parse(given)),
  delete: (memory, given) => memory.delete(...z.tuple([z.string()]).parse(given)),
  context: (memory) => memory.context(),
};

/** Hears a pack while it runs: its questions go to its memory, all else to whoever waits for it. */
export function answerFor({ memory, progress, log, doNotCache }: ExecutionContext, refusals: Map<number, Failure>) {
  let underWay = 0;
  return (said: Said, answer: (heard: Heard) => void): void => {
    if (said.is === 'progress') progress(said.done, said.of, said.saying);
    if (said.is === 'log') log(said.text);
    if (said.is === 'doNotCache') doNotCache();
    if (said.is !== 'ask') return;
    if ((underWay += 1) > AT_ONCE) throw new Error('It asks more at once than its own runtime does.');
    const { id, what, with: given } = said;
    void answered(memory, what, given)
      .then(
        (value) => answer({ is: 'answer', id, value }),
        (error: unknown) => {
          if (!(error instanceof z.ZodError)) refusals.set(id, asFailure(error));
          const message = error instanceof z.ZodError ? usageOf(what) : asFailure(error).message;
          answer({ is: 'refusal', id, message });
        },
      )
      .finally(() => (underWay -= 1));
  };
}

async function answered(memory: PackMemory | undefined, what: string, given: unknown[]): Promise<unknown> {
  if (!memory || !Object.hasOwn(questions, what)) throw new z.ZodError([]);
  return await questions[what]?.(memory, given);
}

const usageOf = (what: string): string =>
  what === 'store'
    ? 'store takes a key, what to keep, and of ttl, category and tags what differs; compare it with docs/packs.md'
    : `${what} takes a key, or the beginning of one; compare it with docs/packs.md`;
