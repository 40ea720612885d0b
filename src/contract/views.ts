import * as z from 'zod';
import { SidecarStatus } from './embeddings.ts';
import { FactVersion } from './fact.ts';
import { lazy, type SchemaOutput } from './lazy.ts';
import { MY_DEFAULTS, EXPIRING_SOON, LISTED_NAMES, OVERVIEW } from './limits.ts';
import type { ClockState, ListeningState, StoreStatus } from './status.ts';
import { inputObject, Time } from './text.ts';

const ofWhom = lazy(() => z.string().describe('Whose memory this is: caller=<subject>.'));
const fetched = lazy(() => Time().describe('When this was read.'));
const emptyNote = lazy(() => z.string().exactOptional().describe('Why there is nothing, when there is nothing.'));
const seconds = (what: string) => z.int().min(0).describe(`${what}, in seconds since 1970.`);
const count = (what: string) => z.int().min(0).describe(what);

const nothing = (title: string, description: string) => inputObject({}, { title, description });

export const MyMemoryInput = lazy(() =>
  nothing('Show my memory', 'Which categories of facts there are, how many in each, and their newest keys; no values.'),
);

/** A table of contents: small enough to read before every store, and without a single value. */
export const MyMemory = lazy(() =>
  z.object({
    scope: ofWhom(),
    fetched_at: fetched(),
    categories: z
      .array(
        z.object({
          name: z.string().describe('The category.'),
          count: count('Facts in it.'),
          recent_keys: z.array(z.string()).max(OVERVIEW.keys).describe('Its newest keys, newest first.'),
        }),
      )
      .max(OVERVIEW.categories)
      .describe('Categories of facts, A to Z.'),
    more_categories: z.int().min(1).exactOptional().describe('How many categories are not shown.'),
    note: emptyNote(),
  }),
);
export type MyMemory = SchemaOutput<typeof MyMemory>;

export const NamesInput = lazy(() =>
  nothing('Show names', 'The tags that facts have and the clients that wrote them, and how many facts of each.'),
);

const names = (what: string, one: string) =>
  z
    .array(z.object({ name: z.string().describe(one), count: count('Facts that have it.') }))
    .max(LISTED_NAMES)
    .describe(`${what}, by how many facts have them.`);

/** What facts can be narrowed by beside their category. */
export const NameCounts = lazy(() => z.object({ tags: names('Tags', 'The tag.'), clients: names('Clients', 'The client.') }));

export const MyDefaultsInput = lazy(() =>
  nothing('Show my defaults', 'What this caller usually runs and with which inputs, learned from runs that succeeded.'),
);

const usualInputs = lazy(() =>
  z.record(z.string(), z.string()).exactOptional().describe('The most frequent value of each input worth learning.'),
);

/** Learned from audit rows, which only the engine writes: an agent cannot teach the owner's agents a habit. */
export const MyDefaults = lazy(() =>
  z.object({
    scope: ofWhom(),
    fetched_at: fetched(),
    packs: z
      .array(
        z.object({
          id: z.string().describe('The pack.'),
          calls: count('Successful runs.'),
          last_used_unix: seconds('Its last successful run'),
          common_inputs: usualInputs(),
        }),
      )
      .max(MY_DEFAULTS.each)
      .describe('Packs by number of successful runs, then last use.'),
    pipelines: z
      .array(
        z.object({
          id: z.string().describe('The pipeline.'),
          runs: count('Successful runs.'),
          last_used_unix: seconds('Its last successful run'),
          common_inputs: usualInputs(),
        }),
      )
      .max(MY_DEFAULTS.each)
      .describe('Pipelines by number of successful runs, then last use.'),
    common_findings: z
      .array(
        z.object({
          code: z.string().describe('What was found.'),
          severity: z.string().describe('How grave.'),
          count: count('How often.'),
        }),
      )
      .max(MY_DEFAULTS.findings)
      .exactOptional()
      .describe('What runs of every outcome found most often.'),
    recent: z
      .array(
        z.object({
          kind: z.enum(['pack', 'pipeline']).describe('What ran.'),
          id: z.string().describe('Which one.'),
          outcome: z.string().describe('How it ended.'),
          at_unix: seconds('When'),
          duration_ms: count('How long, in milliseconds; absent where the program ended before the run did.').exactOptional(),
        }),
      )
      .max(MY_DEFAULTS.recent)
      .describe('The latest runs, newest first.'),
    note: emptyNote(),
  }),
);
export type MyDefaults = SchemaOutput<typeof MyDefaults>;

export const ContextInput = lazy(() =>
  nothing('Load context', 'The newest facts with their values, grouped by category, to begin a conversation with.'),
);

export const Context = lazy(() =>
  z.object({
    scope: ofWhom(),
    fetched_at: fetched(),
    categories: z
      .array(
        z.object({
          name: z.string().describe('The category.'),
          facts: z
            .array(
              FactVersion()
                .pick({ value: true, client: true, defined_by: true, expires_at: true })
                .extend({
                  key: z.string().describe('Name of the fact.'),
                  updated_at: Time().describe('When it was last changed.'),
                }),
            )
            .describe('Its facts, newest first.'),
        }),
      )
      .describe('At most the 50 newest facts, by category.'),
    partial: z.literal(true).exactOptional().describe('Present when there was more than fits.'),
    note: emptyNote(),
  }),
);
export type Context = SchemaOutput<typeof Context>;

export const CallersInput = lazy(() =>
  nothing(
    'Show callers',
    'Whose memories there are and how many facts each holds; only the own one unless the token is an admin.',
  ),
);

export const CallerList = lazy(() =>
  z.object({
    callers: z
      .array(z.object({ namespace: z.string().describe('Whose memory.'), count: count('Facts in it.') }))
      .describe('One row for each memory that may be seen.'),
  }),
);
export type CallerList = SchemaOutput<typeof CallerList>;

export const StatusInput = lazy(() =>
  nothing('Show status', 'Whether the memory is kept on disk, whether its key is at hand, and what to do if not.'),
);

const why = lazy(() => z.string().describe('What is the matter.'));
const remedy = lazy(() => z.string().describe('What the owner can do.'));

export const KeyStatus = lazy(() =>
  z
    .discriminatedUnion('at', [
      z.object({ at: z.literal('ok').describe('The key is at hand.'), source: z.string().describe('Where it came from.') }),
      z.object({ at: z.literal('ephemeral').describe('There is no key; nothing is kept on disk.'), remedy: remedy() }),
      z.object({ at: z.literal('locked').describe('The keychain is locked.'), why: why(), remedy: remedy() }),
      z.object({ at: z.literal('absent').describe('The key of this memory is not there.'), remedy: remedy() }),
      z.object({ at: z.literal('mismatch').describe('The key is not the one of this memory.'), why: why(), remedy: remedy() }),
      z.object({ at: z.literal('unavailable').describe('The place of the key does not answer.'), why: why(), remedy: remedy() }),
    ])
    .describe('Where the key stands.'),
);

export const ClockStatus = lazy(
  () =>
    z
      .discriminatedUnion('at', [
        z.object({ at: z.literal('ok').describe('The clock of this machine agrees with the time that this memory has seen.') }),
        z.object({ at: z.literal('unchecked').describe('Without the key, the time that this memory has seen cannot be read.') }),
        z.object({
          at: z
            .literal('ahead')
            .describe('The clock jumped forward, and nothing vouches for it. Expired entries are hidden, and none is deleted.'),
          machine: Time().describe('What the clock of this machine says.'),
          memory: Time().exactOptional().describe('What it should say by the time that has passed; absent if that is unknown.'),
          why: why(),
          remedy: remedy(),
          review_in_seconds: count('When the clock may be accepted without the owner.').exactOptional(),
        }),
        z.object({
          at: z.literal('behind').describe('The clock is behind the time that this memory has seen, which is used instead.'),
          machine: Time().describe('What the clock of this machine says.'),
          memory: Time().describe('The time that is used instead.'),
          why: why(),
          remedy: remedy(),
        }),
      ])
      .describe(
        'How the clock of this machine compares with the time that this memory has seen.',
      ) satisfies z.ZodType<ClockState>,
);

const ListenerStatus = lazy(
  () =>
    z
      .discriminatedUnion('at', [
        z.object({ at: z.literal('listening').describe('Agents can come.'), url: z.string().describe('Where they do.') }),
        z.object({
          at: z.literal('paused').describe('Nobody is let in: the owner paused it, or no program serves this memory.'),
        }),
        z.object({ at: z.literal('failed').describe('Agents cannot come.'), why: why() }),
      ])
      .describe('Whether agents can come.') satisfies z.ZodType<ListeningState>,
);

export const Status = lazy(() =>
  z.object({
    versions: z
      .object({ program: z.string().describe('Of Helmdeck Memory.'), node: z.string().describe('Of what it runs on.') })
      .describe('What answers.'),
    listener: ListenerStatus(),
    store: z
      .object({
        kept: z.enum(['file', 'memory']).describe('file: sealed on disk. memory: gone when the program ends.'),
        key: KeyStatus(),
        file: z
          .discriminatedUnion('at', [
            z.object({ at: z.literal('open').describe('The file is in use.') }),
            z.object({ at: z.literal('failed').describe('The file cannot be used.'), why: why(), remedy: remedy() }),
          ])
          .describe('The health of the file.'),
        quarantined: count('Entries left out because their seal is broken.'),
        clock: ClockStatus(),
        rotation: z
          .discriminatedUnion('at', [
            z.object({ at: z.literal('none').describe('No key rotation is running.') }),
            z.object({
              at: z.literal('running').describe('A key rotation is running.'),
              done: count('Entries under the new key.'),
              of: count('Entries in all.'),
            }),
          ])
          .describe('Progress of a key rotation.'),
      } satisfies { [Name in keyof StoreStatus]: z.ZodType<StoreStatus[Name]> })
      .describe('The state of the memory.'),
    embeddings: SidecarStatus(),
    facts: count('Live facts of this caller.'),
    expiring_soon: count(`Those of them that go within ${EXPIRING_SOON / 86_400} days.`),
  }),
);
export type Status = SchemaOutput<typeof Status>;
