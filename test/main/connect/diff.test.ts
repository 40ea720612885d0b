import { expect, test } from 'vitest';
import { changedLines } from '../../../src/main/connect/diff.ts';

test('a long line is shortened to the part that changes (R-CONN-02)', () => {
  const [start, end] = ['x'.repeat(1000), 'z'.repeat(1000)];
  const [minus, plus] = changedLines(`{"a":"${start}","b":"${end}"}\n`, `{"a":"${start}","ours":1,"b":"${end}"}\n`);
  expect(minus).toMatchObject({ sign: '-', text: expect.stringMatching(/^…x+","b":"z+…$/) });
  expect(plus).toMatchObject({ sign: '+', text: expect.stringMatching(/^…x+","ours":1,"b":"z+…$/) });
  for (const { text } of [minus, plus] as { text: string }[]) expect(text.length).toBeLessThan(500);
});

test('a long unchanged line is shortened, and short lines are not', () => {
  const long = 'x'.repeat(1000);
  expect(changedLines(`${long}\na\nb\n`, `${long}\na\nc\n`)).toEqual([
    { sign: ' ', text: `${'x'.repeat(480)}…` },
    { sign: ' ', text: 'a' },
    { sign: '-', text: 'b' },
    { sign: '+', text: 'c' },
  ]);
});

test('equal texts have no lines', () => {
  expect(changedLines('a\nb\n', 'a\nb\n')).toEqual([]);
});
