import { randomUUID } from 'node:crypto';
import type { Activity } from '../../contract/history.ts';
import { ACTIVITY_TTL } from '../../contract/limits.ts';
import { authorOf, type Caller } from '../caller.ts';
import type { Entry, Note } from '../store.ts';
import { time } from '../time.ts';

type Row = Activity['activity'][number];
type About = Pick<Row, 'key' | 'scope'>;

/** What is kept about a write or a forget, besides who and when. */
export const noteOf = (caller: Caller, operation: Row['operation'], about: About): Note => ({
  key: randomUUID(),
  value: JSON.stringify({ operation, ...about }),
  category: 'activity',
  tags: [],
  author: authorOf(caller),
  lifetime: ACTIVITY_TTL * 1000,
});

export const readNote = ({ value, author, updatedAt }: Entry): Row => {
  // Only `noteOf` writes these, and the seal says that nobody changed them.
  const { operation, key, scope } = JSON.parse(value) as Pick<Row, 'operation' | 'key' | 'scope'>;
  return {
    at: time(updatedAt),
    operation,
    client: author.client,
    ...(key !== undefined && { key }),
    ...(scope !== undefined && { scope }),
  };
};
