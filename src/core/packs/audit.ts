import * as z from 'zod';
import { Failure } from '../../contract/failure.ts';
import { PACK } from '../../contract/limits.ts';
import { PackFinding } from '../../contract/pack.ts';
import { lazy, oneLine, type SchemaOutput } from '../../contract/schema.ts';
import { isKeyAvailable } from '../../contract/status.ts';
import { authorOf, type Caller } from '../access/caller.ts';
import { findSecret } from '../operations/secret-guard.ts';
import type { Author, Entry, MemoryStore } from '../store/store.ts';
import type { PackHook } from './hook.ts';

/** Names of the inputs whose usual values `my-defaults` learns. Only text at the top level of the input is learned. */
const LEARNABLE_INPUTS = [
  'persona',
  'audience',
  'angle',
  'model',
  'theme',
  'voice',
  'persona_used',
  'kind',
  'format',
  'title',
  'author',
] as const;

/** Maximum characters of an input that is learned. */
const LEARNED_CHARACTERS = 200;

const Learned = lazy(() => z.record(z.string(), z.string()).exactOptional());

const PackRow = lazy(() =>
  z.object({
    pack: z.string(),
    version: z.string(),
    outcome: z.string(),
    at_unix: z.int(),
    duration_ms: z.int(),
    learn_inputs: Learned(),
    findings: z.array(PackFinding()).exactOptional(),
  }),
);
type PackRow = SchemaOutput<typeof PackRow>;

const PipelineRow = lazy(() =>
  z.object({
    pipeline: z.string(),
    run_id: z.string(),
    outcome: z.enum(['succeeded', 'failed', 'cancelled']),
    at_unix: z.int(),
    /** Duration of the run in milliseconds. Absent if the program stopped before the run ended. */
    duration_ms: z.int().exactOptional(),
    learn_inputs: Learned(),
  }),
);
type PipelineRow = SchemaOutput<typeof PipelineRow>;

const AUDIT_CATEGORIES = { pack: 'pack_history', pipeline: 'pipeline_history' } as const;

export interface AuditRow {
  readonly kind: keyof typeof AUDIT_CATEGORIES;
  readonly id: string;
  readonly outcome: string;
  readonly succeeded: boolean;
  readonly at: number;
  /** Duration of the run in milliseconds. Undefined if the program stopped before the run ended. */
  readonly durationMs: number | undefined;
  readonly inputs: Readonly<Record<string, string>>;
  readonly findings: readonly PackFinding[];
  /** Sort key of the row, because several rows can have the same time in seconds. */
  readonly sequence: string;
}

/** Parses an audit row. Returns undefined if the entry is not a valid audit row. */
export function parseAuditRow({ key, value, category }: Entry): AuditRow | undefined {
  const moment = key.slice(key.lastIndexOf('/') + 1);
  const parsed: unknown = JSON.parse(value);
  if (category === AUDIT_CATEGORIES.pack) {
    const { data } = PackRow().safeParse(parsed);
    return (
      data && {
        kind: 'pack',
        id: data.pack,
        succeeded: data.outcome === 'ok',
        findings: data.findings ?? [],
        ...common(data, moment),
      }
    );
  }
  const { data } = PipelineRow().safeParse(parsed);
  return (
    data && {
      kind: 'pipeline',
      id: data.pipeline,
      succeeded: data.outcome === 'succeeded',
      findings: [],
      ...common(data, moment),
    }
  );
}

const common = (row: PackRow | PipelineRow, sequence: string) => ({
  outcome: row.outcome,
  at: row.at_unix,
  durationMs: row.duration_ms,
  inputs: row.learn_inputs ?? {},
  sequence,
});

/** Writes the audit records of runs. Only the program writes to this key space; agents cannot store anything in it. */
export class Audit {
  readonly #store: MemoryStore;
  #last = 0n;

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  /** Throws if the key is unavailable, because then the run could not be recorded. */
  requireRecordable(): void {
    const { key } = this.#store.status();
    if (isKeyAvailable(key)) return;
    throw new Failure(
      'key_unavailable',
      `The key of this memory is not available, so the run could not be recorded. ${key.remedy}`,
    );
  }

  async recordPackRun(caller: Caller, row: Omit<PackRow, 'at_unix'>): Promise<void> {
    await this.#save(caller.subject, authorOf(caller), 'pack', row.pack, row);
  }

  /**
   * Records a pipeline run. The parameter is the author rather than the caller, because a run that is ended after a restart has
   * no caller.
   */
  async recordPipelineRun(subject: string, author: Author, row: Omit<PipelineRow, 'at_unix'>): Promise<void> {
    await this.#save(subject, author, 'pipeline', row.pipeline, row);
  }

  async #save(subject: string, author: Author, kind: keyof typeof AUDIT_CATEGORIES, id: string, row: object): Promise<void> {
    const now = this.#store.now();
    await this.#store.space({ subject }, 'audit').put({
      key: `${AUDIT_CATEGORIES[kind]}/${id}/${this.#moment(now)}`,
      value: JSON.stringify({ ...row, at_unix: Math.floor(now / 1000) }),
      category: AUDIT_CATEGORIES[kind],
      tags: [],
      author,
      lifetime: PACK.recordTtl * 1000,
    });
  }

  /**
   * Returns a unique timestamp of 20 digits in nanoseconds. The clock counts milliseconds, so a counter makes the timestamps
   * unique.
   */
  #moment(now: number): string {
    const requested = BigInt(now) * 1_000_000n;
    this.#last = requested > this.#last ? requested : this.#last + 1n;
    return this.#last.toString().padStart(20, '0');
  }
}

/** Whether a run record contains learned inputs or findings, which are text that the run's client could choose. */
export function teachesText(entry: Entry): boolean {
  const row = parseAuditRow(entry);
  return row !== undefined && (Object.keys(row.inputs).length > 0 || row.findings.length > 0);
}

/** Records every run, including cancelled runs, except runs of the memory packs and of `route` (R-PACK-06). */
export const auditHook = (audit: Audit): PackHook => ({
  before({ pack }) {
    if (!pack.unaudited) audit.requireRecordable();
    return undefined;
  },

  async after({ pack, caller, input, context }, { outcome, output, durationMs }) {
    if (pack.unaudited) return;
    // The author of a pipeline chose the inputs of its steps, so such inputs are not habits of the caller.
    const inputs = context.callContext.pipelineRun === undefined ? learnableInputs(caller, input) : undefined;
    const findings = caller.quarantined ? [] : findingsIn(output);
    await audit.recordPackRun(caller, {
      pack: pack.name,
      version: pack.version,
      outcome,
      duration_ms: durationMs,
      ...(inputs && { learn_inputs: inputs }),
      ...(findings.length > 0 && { findings }),
    });
  },
});

/**
 * Returns the short top-level strings in the learnable fields. Leaves out every text that looks like a credential. Nothing is learned
 * from a quarantined client, because other clients find these texts when they search run records (R-INBOX-01).
 */
export function learnableInputs({ quarantined }: Caller, input: unknown): Record<string, string> | undefined {
  if (quarantined || typeof input !== 'object' || input === null) return undefined;
  const fields: [string, string][] = [];
  for (const name of LEARNABLE_INPUTS) {
    const value: unknown = Object.hasOwn(input, name) ? (input as Record<string, unknown>)[name] : undefined;
    if (typeof value !== 'string' || value === '' || oneLine(value, LEARNED_CHARACTERS) !== value || findSecret(value)) continue;
    fields.push([name, value]);
  }
  return fields.length > 0 ? Object.fromEntries(fields) : undefined;
}

const Findings = lazy(() => z.object({ findings: z.array(z.unknown()) }));

function findingsIn(output: unknown): PackFinding[] {
  const { data } = Findings().safeParse(output);
  const all = (data?.findings ?? []).map((finding) => PackFinding().safeParse(finding).data);
  return all
    .filter((finding) => finding !== undefined && !findSecret(JSON.stringify(finding)))
    .slice(0, PACK.findings) as PackFinding[];
}
