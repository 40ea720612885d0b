import { describe, expect, test } from 'vitest';
import type { KeyState, StoreStatus } from '../../../src/contract/status.ts';
import { startReport } from '../../../src/main/roots/start-report.ts';

const report = (key: KeyState, kept: StoreStatus['kept'] = 'file'): string =>
  startReport(
    { kept, key, file: { at: 'open' }, quarantined: 0, clock: { at: 'ok' }, rotation: { at: 'none' } },
    { folder: "/home/ada/o'hara", database: undefined },
  ).join('\n');

describe('the start report (R-KEY-03, R-KEY-05)', () => {
  test('names the memory and its key, without a warning', () => {
    const told = report({ at: 'ok', source: 'the OS keychain' });
    expect(told).toMatch("/home/ada/o'hara/memory.db");
    expect(told).toMatch('the OS keychain');
    expect(told).not.toMatch('WARNING');
  });

  const remedy = 'Do this.';
  test.each<KeyState>([
    { at: 'locked', why: 'no user is logged in', remedy },
    { at: 'absent', remedy },
    { at: 'mismatch', why: 'it is another key', remedy },
    { at: 'unavailable', why: 'there is no bus', remedy },
  ])('warns with the reason and the remedy if the key is $at', (key) => {
    const told = report(key);
    expect(told).toMatch(`WARNING: THE KEY IS ${key.at.toUpperCase()}`);
    expect(told).toMatch('why' in key ? key.why : remedy);
    expect(told).toMatch(remedy);
    expect(told).toMatch(/helmdeck-memory unlock, or restart this program/);
  });

  test('warns about a memory in RAM, and names the command that creates a key', () => {
    const told = report({ at: 'ephemeral', remedy }, 'memory');
    expect(told).toMatch(/^WARNING: THERE IS NO KEY.*lost when this program exits/);
    expect(told).toMatch(/^ {2}helmdeck-memory key init --file$/m);
    expect(told).toMatch(/HELMDECK_MEMORY_KEY.*HELMDECK_MEMORY_KEY_FILE/);
  });
});
