import { describe, expect, test } from 'vitest';
import { IMPORT_REQUEST } from '../../src/contract/limits.ts';
import type { MemoryClient } from '../../src/contract/window.ts';
import { importAll } from '../../src/renderer/src/settings/transfer-files.ts';

const lines = (count: number, line = 'x'): string[] => Array.from({ length: count }, () => line);

/** The requests of an import: the first line and the number of lines of each. */
async function requestsOf(all: readonly string[]): Promise<[first: number, lines: number][]> {
  const requests: [number, number][] = [];
  const ask = (async (_name: string, input: { lines: string[]; first_line: number }) => {
    requests.push([input.first_line, input.lines.length]);
    return { created: 0, updated: 0, unchanged: 0, dropped: 0, errors: [] };
  }) as unknown as MemoryClient;
  await importAll(ask, all, { dry: true, onProgress: () => undefined, signal: new AbortController().signal });
  return requests;
}

describe('an import', () => {
  test('sends batches of the allowed size, each with the number of its first line', async () => {
    expect(await requestsOf(lines(IMPORT_REQUEST.lines * 2 + 1))).toEqual([
      [1, IMPORT_REQUEST.lines],
      [IMPORT_REQUEST.lines + 1, IMPORT_REQUEST.lines],
      [IMPORT_REQUEST.lines * 2 + 1, 1],
    ]);
    expect(await requestsOf([])).toEqual([]);
  });

  test('sends smaller batches of long lines', async () => {
    expect((await requestsOf(lines(10, 'ü'.repeat(100_000)))).map(([, count]) => count)).toEqual([2, 2, 2, 2, 2]);
    expect((await requestsOf(lines(2, 'x'.repeat(2 ** 20)))).map(([first]) => first)).toEqual([1, 2]);
  });

  test('reports lines that are too long and does not send them', async () => {
    const sent: unknown[] = [];
    const ask = (async (_name: string, input: object) => {
      sent.push(input);
      return { created: 0, updated: 0, unchanged: 0, dropped: 0, errors: [] };
    }) as unknown as MemoryClient;
    const report = await importAll(ask, ['x'.repeat(2 ** 20)], {
      dry: true,
      onProgress: () => undefined,
      signal: new AbortController().signal,
    });
    expect(sent).toEqual([{ lines: [''], first_line: 1, dry_run: true }]);
    expect(report.errors).toEqual([{ line: 1, message: 'The line is too long for a fact. Export the facts again.' }]);
  });

  test('stops when it is aborted (R-WIN-25)', async () => {
    const stop = new AbortController();
    const ask = (async () => {
      stop.abort();
      return { created: 500, updated: 0, unchanged: 0, dropped: 0, errors: [] };
    }) as unknown as MemoryClient;
    const report = await importAll(ask, lines(2000), { dry: false, onProgress: () => undefined, signal: stop.signal });
    expect(report.created).toBe(500);
  });
});
