import { Failure } from '../contract/failure.ts';
import type { Quota } from './store.ts';

/** What is said to a subject that has used up its share (R-FACT-16). */
export function overQuota(what: keyof Quota, quota: Quota): Failure {
  const holds = what === 'facts' ? `${quota.facts} facts` : `${size(quota.bytes)}, earlier versions included`;
  return new Failure(
    'quota_exceeded',
    `This memory may hold ${holds}, and has; forget what is no longer needed, or have its owner raise ${SETTING[what]}.`,
  );
}

const MIB = 1024 * 1024;
const size = (bytes: number): string => (bytes < MIB ? `${bytes} bytes` : `${Math.floor(bytes / MIB)} MiB`);

const SETTING: Record<keyof Quota, string> = { facts: 'HELMDECK_QUOTA_FACTS', bytes: 'HELMDECK_QUOTA_BYTES' };
