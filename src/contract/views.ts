import * as z from 'zod';
import { SidecarStatus } from './embeddings.ts';
import { FactVersion } from './fact.ts';
import { MY_DEFAULTS, EXPIRING_SOON, LISTED_NAMES, OVERVIEW } from './limits.ts';
import { MeaningStatus } from './meaning.ts';
import { count, lazy, noInput, type SchemaOutput, Time } from './schema.ts';
import type { ClockState, ListeningState, StoreStatus } from './status.ts';

const ofWhom = lazy(() => z.string().describe('Subject of this memory, in the form `caller=<subject>`.'));
const fetched = lazy(() => Time().describe('Time at which the data was read.'));
const emptyNote = lazy(() => z.string().exactOptional().describe('Why the result is empty. Absent if the result is not empty.'));
const unixTime = (description: string) => z.int().min(0).describe(`${description}, in seconds since 1970.`);

export const MyMemoryInput = lazy(() =>
  noInput(
    'Show my memory',
    'Lists the categories of facts, with the number of facts and the newest keys in each category. Values are not included.',
  ),
);

/** A table of contents of the memory, without values. It is small enough for an agent to read before it stores each fact. */
export const MyMemory = lazy(() =>
  z.object({
    scope: ofWhom(),
    fetched_at: fetched(),
    categories: z
      .array(
        z.object({
          name: z.string().describe('Name of the category.'),
          count: count('Number of facts in the category.'),
          recent_keys: z.array(z.string()).max(OVERVIEW.keys).describe('Keys of the newest facts in the category, newest first.'),
        }),
      )
      .max(OVERVIEW.categories)
      .describe('Categories in alphabetical order.'),
    more_categories: z
      .int()
      .min(1)
      .exactOptional()
      .describe('Number of further categories that are not listed. Absent if all categories are listed.'),
    note: emptyNote(),
  }),
);
export type MyMemory = SchemaOutput<typeof MyMemory>;

export const NamesInput = lazy(() =>
  noInput(
    'Show names',
    'Lists the tags and the clients that occur in the facts, with the number of facts for each tag and each client.',
  ),
);

const names = (plural: string, name: string) =>
  z
    .array(z.object({ name: z.string().describe(name), count: count('Number of facts.') }))
    .max(LISTED_NAMES)
    .describe(`${plural}, those with the most facts first.`);

/** The tags and clients by which the window can filter facts. */
export const NameCounts = lazy(() =>
  z.object({ tags: names('Tags', 'Name of the tag.'), clients: names('Clients', 'Name of the client.') }),
);

export const MyDefaultsInput = lazy(() =>
  noInput(
    'Show my defaults',
    'Shows which packs and pipelines this caller usually runs, and with which inputs. The defaults are learned from successful runs.',
  ),
);

const usualInputs = lazy(() =>
  z
    .record(z.string(), z.string())
    .exactOptional()
    .describe('The most frequent value of each input, by input name. Absent if no values were learned.'),
);

/** The habits of a caller, learned from run records. Agents cannot write run records, so they cannot fake habits. */
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
      .describe('Packs, with the most successful runs first. Ties are ordered by last use.'),
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
      .describe('Pipelines, with the most successful runs first. Ties are ordered by last use.'),
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
      .describe('The most common findings of packs, from successful and failed runs.'),
    recent: z
      .array(
        z.object({
          kind: z.enum(['pack', 'pipeline']).describe('Kind of the run: of a pack or of a pipeline.'),
          id: z.string().describe('Name of the pack or id of the pipeline.'),
          outcome: z.string().describe('Outcome of the run.'),
          at_unix: unixTime('Time of the run'),
          duration_ms: count(
            'Duration of the run in milliseconds. Absent if Helmdeck Memory stopped before the run ended.',
          ).exactOptional(),
        }),
      )
      .max(MY_DEFAULTS.recent)
      .describe('The latest runs, newest first.'),
    note: emptyNote(),
  }),
);
export type MyDefaults = SchemaOutput<typeof MyDefaults>;

export const ContextInput = lazy(() =>
  noInput(
    'Load context',
    'Returns the newest facts with their values, grouped by category. Meant for the start of a conversation.',
  ),
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
                .pick({ value: true, marked: true, client: true, defined_by: true, expires_at: true })
                .extend({
                  key: z.string().describe('Key of the fact.'),
                  updated_at: Time().describe('When the fact was last changed.'),
                }),
            )
            .describe('Facts of the category, newest first.'),
        }),
      )
      .describe('The newest facts, at most 50, grouped by category.'),
    partial: z
      .literal(true)
      .exactOptional()
      .describe('Present if some facts were left out, because the response has a limited size.'),
    note: emptyNote(),
  }),
);
export type Context = SchemaOutput<typeof Context>;

export const CallersInput = lazy(() =>
  noInput(
    'Show callers',
    'Lists memories by subject, with the number of facts in each. Only a token with the scope `admin` can see the memories of other subjects.',
  ),
);

export const CallerList = lazy(() =>
  z.object({
    callers: z
      .array(
        z.object({ namespace: z.string().describe('Subject of the memory.'), count: count('Number of facts in the memory.') }),
      )
      .describe('One row for each memory that the caller is allowed to see.'),
  }),
);
export type CallerList = SchemaOutput<typeof CallerList>;

export const StatusInput = lazy(() =>
  noInput(
    'Show status',
    'Shows the state of the program, the stored data, the master key, the clock, embeddings and search by meaning. If there is a problem, shows what to do.',
  ),
);

const why = lazy(() => z.string().describe('Description of the problem.'));
const remedy = lazy(() => z.string().describe('How the owner can solve the problem.'));

export const KeyStatus = lazy(() =>
  z
    .discriminatedUnion('at', [
      z.object({
        at: z.literal('ok').describe('The key is available.'),
        source: z.string().describe('Where the key is stored, such as the keychain.'),
      }),
      z.object({
        at: z
          .literal('ephemeral')
          .describe('There is no key, so facts are stored only in RAM and are lost when the program exits.'),
        remedy: remedy(),
      }),
      z.object({
        at: z.literal('locked').describe('The memory or the OS keychain is locked, so the key cannot be used.'),
        why: why(),
        remedy: remedy(),
      }),
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
          machine: Time().describe("Current time on this machine's clock."),
          memory: Time()
            .exactOptional()
            .describe('The expected time: the last recorded time plus the time that has passed since then. Absent if unknown.'),
          why: why(),
          remedy: remedy(),
          review_in_seconds: count(
            'Seconds until the program checks the clock again and can accept it without the owner.',
          ).exactOptional(),
        }),
        z.object({
          at: z
            .literal('behind')
            .describe('The clock is behind the time that this memory has recorded. The recorded time is used instead.'),
          machine: Time().describe("Current time on this machine's clock."),
          memory: Time().describe('The recorded time, which is used instead.'),
          why: why(),
          remedy: remedy(),
        }),
      ])
      .describe(
        "State of this machine's clock, compared with the time that this memory has recorded.",
      ) satisfies z.ZodType<ClockState>,
);

const ListenerStatus = lazy(
  () =>
    z
      .discriminatedUnion('at', [
        z.object({
          at: z.literal('listening').describe('Agents can connect.'),
          url: z.string().describe('URL at which agents on this machine can connect.'),
          server_url: z
            .string()
            .exactOptional()
            .describe('URL at which agents on other machines can connect. Absent if they cannot connect.'),
        }),
        z.object({
          at: z
            .literal('paused')
            .describe('Agents cannot connect: the owner paused connections, or Helmdeck Memory is not running.'),
        }),
        z.object({ at: z.literal('failed').describe('Agents cannot connect, because of an error.'), why: why() }),
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
          .enum(['file', 'database', 'memory'])
          .describe(
            'Location of the facts. `file`: on disk, sealed. `database`: on a database server, sealed. `memory`: only in RAM, so they are lost when the program exits.',
          ),
        key: KeyStatus(),
        file: z
          .discriminatedUnion('at', [
            z.object({ at: z.literal('open').describe('The database file is open and works.') }),
            z.object({ at: z.literal('failed').describe('The database file cannot be used.'), why: why(), remedy: remedy() }),
          ])
          .describe('State of the database file.'),
        quarantined: count(
          'Number of entries with a broken seal that were found since the program started. They are left out of all responses.',
        ),
        clock: ClockStatus(),
        rotation: z
          .discriminatedUnion('at', [
            z.object({ at: z.literal('none').describe('No key rotation is running.') }),
            z.object({
              at: z.literal('running').describe('A key rotation is running.'),
              done: count('Number of entries that are already sealed with the new key.'),
              of: count('Total number of entries.'),
            }),
          ])
          .describe('Whether a key rotation is running, and its progress.'),
      } satisfies { [Name in keyof StoreStatus]: z.ZodType<StoreStatus[Name]> })
      .describe('State of the stored data.'),
    embeddings: SidecarStatus(),
    meaning: MeaningStatus(),
    facts: count('Number of facts of this subject.'),
    expiring_soon: count(`Number of facts that expire within ${EXPIRING_SOON / 86_400} days.`),
    inbox: count("Number of writes that wait for the owner's approval. Present only for the owner.").exactOptional(),
  }),
);
export type Status = SchemaOutput<typeof Status>;
