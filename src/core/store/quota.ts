import { Failure } from '../../contract/failure.ts';
import { PACK, RECORD_ROWS } from '../../contract/limits.ts';
import type { Kind, Quota } from './store.ts';

const MOST: Partial<Record<Kind, number>> = RECORD_ROWS;

/** Rows of a kind that one namespace keeps; the oldest make room. */
export const rowLimit = (kind: Kind): number => MOST[kind] ?? Infinity;

/**
 * Kinds that the clients of a memory share: one of them must not evict what the others left. Answers of packs are not among
 * them: they are long, and whoever needs one that was evicted runs the pack again.
 */
export const isSharedKind = (kind: Kind): boolean => kind === 'activity' || kind === 'audit';

/** What takes a place that somebody has to make. */
export type QuotaKind = 'fact' | 'pack';

export const isQuotaKind = (kind: Kind): kind is QuotaKind => kind === 'fact' || kind === 'pack';

/** Packs cannot use up what a person has for facts, nor facts what packs have. */
export const quotaOf = (kind: QuotaKind, quota: Quota): Quota =>
  kind === 'fact' ? quota : { facts: PACK.memory, bytes: quota.bytes };

/** What is said to a subject that has used up its share (R-FACT-16, R-PACK-28). */
export function quotaExceeded(kind: QuotaKind, what: keyof Quota, quota: Quota): Failure {
  if (kind === 'pack') {
    const most = what === 'facts' ? `${quota.facts} entries` : size(quota.bytes);
    return new Failure(
      'quota_exceeded',
      `Packs may remember ${most} of their own for one subject, and do; end sessions, or let the pack forget what it does not need.`,
    );
  }
  const holds = what === 'facts' ? `${quota.facts} facts` : `${size(quota.bytes)}, earlier versions included`;
  return new Failure(
    'quota_exceeded',
    `This memory may hold ${holds}, and has; forget what is no longer needed, or have its owner raise ${SETTING[what]}.`,
  );
}

const MIB = 1024 * 1024;
const size = (bytes: number): string => (bytes < MIB ? `${bytes} bytes` : `${Math.floor(bytes / MIB)} MiB`);

const SETTING: Record<keyof Quota, string> = { facts: 'HELMDECK_QUOTA_FACTS', bytes: 'HELMDECK_QUOTA_BYTES' };
