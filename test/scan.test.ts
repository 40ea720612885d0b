import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempFolder } from './support/temp-folder.ts';

const SCAN = join(import.meta.dirname, '../build/tasks/scan.ts');
const PLANTED = ['NODE_INTEGRATION_JS_CHECK planted.js', 'OPEN_EXTERNAL_JS_CHECK planted.js'];
const [, list = ''] = /EXPLAINED = new Set\(\[([^\]]*)\]/.exec(readFileSync(SCAN, 'utf8')) ?? [];
const EXPLAINED = [...list.matchAll(/'([^']+)'/g)].map(([, finding = '']) => finding);

/** Runs the scan of a fake build with a fake scanner that reports the given findings. */
function scan(found: readonly string[]): { status: number | null; said: string } {
  const folder = tempFolder();
  for (const part of ['main', 'preload', 'renderer']) mkdirSync(join(folder, 'out', part), { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{}');
  const results = found.map((finding) => {
    const [ruleId, uri = 'out/index.html'] = finding.split(' ');
    return { ruleId, locations: [{ physicalLocation: { artifactLocation: { uri } } }] };
  });
  const scanner = join(folder, 'scanner.cjs');
  const report = JSON.stringify({ runs: [{ results }] });
  writeFileSync(
    scanner,
    `#!${process.execPath}\nrequire('node:fs').writeFileSync(process.argv[process.argv.indexOf('--output') + 1], ${JSON.stringify(report)});`,
    { mode: 0o755 },
  );
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCAN, scanner], { cwd: folder, encoding: 'utf8' });
  return { status, said: stdout + stderr };
}

test('the scan accepts explained findings', () => {
  expect(EXPLAINED.length).toBeGreaterThan(0);
  expect(scan([...PLANTED, ...EXPLAINED])).toMatchObject({ status: 0 });
});

test.each([
  { what: 'a new finding', found: [...PLANTED, ...EXPLAINED, 'NEW_CHECK main/index.js'], says: 'NEW: NEW_CHECK main/index.js' },
  {
    what: 'an explanation without a finding',
    found: [...PLANTED, ...EXPLAINED.slice(1)],
    says: `no longer found: ${EXPLAINED[0]}`,
  },
  {
    what: 'a planted offence that the scanner misses',
    found: [...PLANTED.slice(1), ...EXPLAINED],
    says: 'did not report the planted offence',
  },
])('the scan fails with $what', ({ found, says }) => {
  const { status, said } = scan(found);
  expect(said).toContain(says);
  expect(status).toBe(1);
});
