import * as z from 'zod';
import { SidecarStatus } from './embeddings.ts';
import { FactVersion } from './fact.ts';
import { MY_DEFAULTS, EXPIRING_SOON, LISTED_NAMES, OVERVIEW } from './limits.ts';
import { count, lazy, noInput, type SchemaOutput, Time } from './schema.ts';
import type { ClockState, ListeningState, StoreStatus } from './status.ts';

const ofWhom = lazy(() => z.string().describe('Subject of this memory, as caller=<subject>.'));
const fetched = lazy(() => Time().describe('When the data was read.'));
const emptyNote = lazy(() => z.string().exactOptional().describe('Why the result is empty. Absent otherwise.'));
const unixTime = (description: string) => z.int().min(0).describe(`${description}, in seconds since 1970.`);
export const MyMemoryInput = lazy(() =>
  noInput('Show my memory', 'Lists the categories of facts, the number of facts in each, and their newest keys. No values.'),
);

/** A table of contents without values, small enough for an agent to read before every store. */
export const MyMemory = lazy(() =>
  z.object({
    scope: ofWhom(),
    fetched_at: fetched(),
    categories: z
      .array(
        z.object({
          name: z.string().describe('Name of the category.'),
          count: count('Number of facts in the category.'),
          recent_keys: z.array(z.string()).max(OVERVIEW.keys).describe('Newest keys of the category, newest first.'),
        }),
      )
      .max(OVERVIEW.categories)
      .describe('Categories in alphabetical order.'),
    more_categories: z.int().min(1).exactOptional().describe('Number of categories that are not listed.'),
    note: emptyNote(),
  }),
);
export type MyMemory = SchemaOutput<typeof MyMemory>;

export const NamesInput = lazy(() =>
  noInput('Show names', 'Lists the tags of the facts and the clients that wrote them, with the number of facts of each.'),
);

const names = (plural: string, name: string) =>
  z
    .array(z.object({ name: z.string().describe(name), count: count('Number of facts.') }))
    .max(LISTED_NAMES)
    .describe(`${plural}, by number of facts.`);

/** Names for filtering facts, besides their categories. */
export const NameCounts = lazy(() =>
  z.object({ tags: names('Tags', 'Name of the tag.'), clients: names('Clients', 'Name of the client.') }),
);

export const MyDefaultsInput = lazy(() =>
  noInput(
    'Show my defaults',
    'Shows which packs and pipelines this caller usually runs, and with which inputs. Learned from successful runs.',
  ),
);

const usualInputs = lazy(() =>
  z.record(z.string(), z.string()).exactOptional().describe('Most frequent value of each learned input.'),
);

/** Learned from records of runs, which only the program writes. A client sees its own habits, the owner those of all clients. */
export const MyDefaults = lazy(() =>
  z.object({
    scope: ofWhom(),
    fetched_at: fetched(),
    packs: z
      .array(
        z.object({
          id: z.string().describe('Name of the pack.'),
          calls: count('Number of successful runs.'),
          last_used_unix: unixTime('Time of the last successful run'),
          common_inputs: usualInputs(),
        }),
      )
      .max(MY_DEFAULTS.each)
      .describe('Packs, by number of successful runs and then by last use.'),
    pipelines: z
      .array(
        z.object({
          id: z.string().describe('Id of the pipeline.'),
          runs: count('Number of successful runs.'),
          last_used_unix: unixTime('Time of the last successful run'),
          common_inputs: usualInputs(),
        }),
      )
      .max(MY_DEFAULTS.each)
      .describe('Pipelines, by number of successful runs and then by last use.'),
    common_findings: z
      .array(
        z.object({
          code: z.string().describe('Code of the finding.'),
          severity: z.string().describe('Severity of the finding.'),
          count: count('Number of occurrences.'),
        }),
      )
      .max(MY_DEFAULTS.findings)
      .exactOptional()
      .describe('Most common findings, from successful and failed runs.'),
    recent: z
      .array(
        z.object({
          kind: z.enum(['pack', 'pipeline']).describe('Whether a pack or a pipeline ran.'),
          id: z.string().describe('Name of the pack or id of the pipeline.'),
          outcome: z.string().describe('Outcome of the run.'),
          at_unix: unixTime('Time of the run'),
          duration_ms: count('Duration in milliseconds. Absent if Helmdeck Memory stopped before the run ended.').exactOptional(),
        }),
      )
      .max(MY_DEFAULTS.recent)
      .describe('Latest runs, newest first.'),
    note: emptyNote(),
  }),
);
export type MyDefaults = SchemaOutput<typeof MyDefaults>;

export const ContextInput = lazy(() =>
  noInput('Load context', 'Loads the newest facts with their values, grouped by category, for the start of a conversation.'),
);

export const Context = lazy(() =>
  z.object({
    scope: ofWhom(),
    fetched_at: fetched(),
    categories: z
      .array(
        z.object({
          name: z.string().describe('Name of the category.'),
          facts: z
            .array(
              FactVersion()
                .pick({ value: true, client: true, defined_by: true, expires_at: true })
                .extend({
                  key: z.string().describe('Key of the fact.'),
                  updated_at: Time().describe('When the fact was last changed.'),
                }),
            )
            .describe('Facts of the category, newest first.'),
        }),
      )
      .describe('At most 50 facts, the newest, by category.'),
    partial: z.literal(true).exactOptional().describe('Present if facts were left out because the limit was reached.'),
    note: emptyNote(),
  }),
);
export type Context = SchemaOutput<typeof Context>;

export const CallersInput = lazy(() =>
  noInput(
    'Show callers',
    'Lists the memories and the number of facts in each. Only an admin token sees memories of other subjects.',
  ),
);

export const CallerList = lazy(() =>
  z.object({
    callers: z
      .array(
        z.object({ namespace: z.string().describe('Subject of the memory.'), count: count('Number of facts in the memory.') }),
      )
      .describe('One row for each memory that the caller may see.'),
  }),
);
export type CallerList = SchemaOutput<typeof CallerList>;

export const StatusInput = lazy(() =>
  noInput('Show status', 'Shows whether the memory is stored on disk, whether its key is available, and what to do if not.'),
);

const why = lazy(() => z.string().describe('The problem.'));
const remedy = lazy(() => z.string().describe('How the owner can fix it.'));

export const KeyStatus = lazy(() =>
  z
    .discriminatedUnion('at', [
      z.object({
        at: z.literal('ok').describe('The key is available.'),
        source: z.string().describe('Where the key came from.'),
      }),
      z.object({ at: z.literal('ephemeral').describe('There is no key, so nothing is stored on disk.'), remedy: remedy() }),
      z.object({ at: z.literal('locked').describe('The keychain is locked.'), why: why(), remedy: remedy() }),
      z.object({ at: z.literal('absent').describe('The key of this memory is missing.'), remedy: remedy() }),
      z.object({
        at: z.literal('mismatch').describe('The key that was found belongs to another memory.'),
        why: why(),
        remedy: remedy(),
      }),
      z.object({
        at: z.literal('unavailable').describe('The key cannot be read from where it is stored.'),
        why: why(),
        remedy: remedy(),
      }),
    ])
    .describe('State of the master key.'),
);

export const ClockStatus = lazy(
  () =>
    z
      .discriminatedUnion('at', [
        z.object({
          at: z.literal('ok').describe('The clock of this machine agrees with the time that this memory has recorded.'),
        }),
        z.object({
          at: z.literal('unchecked').describe('The time that this memory has recorded cannot be read without the key.'),
        }),
        z.object({
          at: z
            .literal('ahead')
            .describe('The clock jumped forward and may be wrong. Expired entries are hidden but not deleted.'),
          machine: Time().describe('Time of the clock of this machine.'),
          memory: Time().exactOptional().describe('Expected time, from the time that has passed. Absent if unknown.'),
          why: why(),
          remedy: remedy(),
          review_in_seconds: count('Seconds until the program may accept the clock without the owner.').exactOptional(),
        }),
        z.object({
          at: z
            .literal('behind')
            .describe('The clock is behind the time that this memory has recorded. The recorded time is used instead.'),
          machine: Time().describe('Time of the clock of this machine.'),
          memory: Time().describe('The recorded time, which is used instead.'),
          why: why(),
          remedy: remedy(),
        }),
      ])
      .describe(
        'State of the clock of this machine, compared with the time that this memory has recorded.',
      ) satisfies z.ZodType<ClockState>,
);

const ListenerStatus = lazy(
  () =>
    z
      .discriminatedUnion('at', [
        z.object({ at: z.literal('listening').describe('Agents can connect.'), url: z.string().describe('URL for agents.') }),
        z.object({
          at: z
            .literal('paused')
            .describe('Agents cannot connect: the owner paused connections, or Helmdeck Memory is not running.'),
        }),
        z.object({ at: z.literal('failed').describe('Agents cannot connect.'), why: why() }),
      ])
      .describe('Whether agents can connect.') satisfies z.ZodType<ListeningState>,
);

export const Status = lazy(() =>
  z.object({
    versions: z
      .object({ program: z.string().describe('Version of Helmdeck Memory.'), node: z.string().describe('Version of Node.') })
      .describe('Versions of the running program.'),
    listener: ListenerStatus(),
    store: z
      .object({
        kept: z
          .enum(['file', 'memory'])
          .describe('file: stored on disk, sealed. memory: in RAM only, lost when the program ends.'),
        key: KeyStatus(),
        file: z
          .discriminatedUnion('at', [
            z.object({ at: z.literal('open').describe('The file is in use.') }),
            z.object({ at: z.literal('failed').describe('The file cannot be used.'), why: why(), remedy: remedy() }),
          ])
          .describe('State of the database file.'),
        quarantined: count('Number of entries left out because their seal is broken.'),
        clock: ClockStatus(),
        rotation: z
          .discriminatedUnion('at', [
            z.object({ at: z.literal('none').describe('No key rotation is running.') }),
            z.object({
              at: z.literal('running').describe('A key rotation is running.'),
              done: count('Number of entries sealed with the new key.'),
              of: count('Number of all entries.'),
            }),
          ])
          .describe('Progress of a key rotation.'),
      } satisfies { [Name in keyof StoreStatus]: z.ZodType<StoreStatus[Name]> })
      .describe('State of the stored data.'),
    embeddings: SidecarStatus(),
    facts: count('Number of facts of this subject.'),
    expiring_soon: count(`Number of facts that expire within ${EXPIRING_SOON / 86_400} days.`),
  }),
);
export type Status = SchemaOutput<typeof Status>;
