import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cited, contract, gaps, readRequirements, requirements } from './requirements.ts';

const own = ['requirements.ts', 'requirements.test.ts'];

const tests = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.(ts|sh)$/.test(path) && !own.includes(path))
  .map((path) => ({ path, text: readFileSync(join(import.meta.dirname, path), 'utf8') }));

describe('the promises of docs/contract.md', () => {
  test('are read from every row with an id', () => {
    const rows = contract.split('\n').filter((line) => line.startsWith('| R-'));
    expect(requirements.map(({ id }) => id)).toEqual(rows.map((line) => cited(line)[0]));
    expect(requirements.filter(({ planned }) => planned)).toHaveLength(rows.filter((line) => line.includes('(planned)')).length);
  });

  test('refer only to promises that exist', () => {
    const known = new Set(requirements.map(({ id }) => id));
    expect(cited(contract).filter((id) => !known.has(id))).toEqual([]);
  });

  test('each have a test, or are marked as planned and have no test', () => {
    expect(gaps(requirements, tests)).toEqual([]);
  });
});

describe('the check itself', () => {
  const promises = readRequirements('| R-AAA-01 | It is so. |\n| R-AAA-02 (planned) | It will be so. |');

  test('reports nothing when every promise has a test', () => {
    expect(gaps(promises, [{ path: 'a.test.ts', text: 'R-AAA-01' }])).toEqual([]);
  });

  test.each([
    { why: 'a promise without a test', text: '', says: 'No test cites R-AAA-01: It is so.' },
    { why: 'a test of nothing promised', text: 'R-AAA-01 R-BBB-01', says: 'a.test.ts cites R-BBB-01, which is not promised.' },
    { why: 'a test of a plan', text: 'R-AAA-01 R-AAA-02', says: 'a.test.ts cites R-AAA-02, which is still marked planned.' },
  ])('finds $why', ({ text, says }) => {
    expect(gaps(promises, [{ path: 'a.test.ts', text }])).toEqual([says]);
  });

  test('reports a duplicate id', () => {
    const twice = readRequirements('| R-AAA-01 | It is so. |\n| R-AAA-01 | It is otherwise. |');
    expect(gaps(twice, [{ path: 'a.test.ts', text: 'R-AAA-01' }])).toEqual(['R-AAA-01 is promised twice.']);
  });
});
