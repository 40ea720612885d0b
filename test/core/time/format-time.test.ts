import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatTime } from '../../../src/core/time/format-time.ts';

test('a time is formatted like toISOString', () => {
  const spelled = (ms: number): void => {
    expect(formatTime(ms)).toBe(new Date(ms).toISOString());
  };
  for (const ms of [0, -1, 1, 86_399_999, 86_400_000, Date.UTC(2024, 1, 29, 23, 59, 59, 999), 8.64e15, -8.64e15]) spelled(ms);
  fc.assert(fc.property(fc.integer({ min: -8.64e15, max: 8.64e15 }), spelled));
});
