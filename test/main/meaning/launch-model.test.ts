import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { findModel } from '../../../src/main/meaning/bundled-model.ts';
import { launchWithNode } from '../../../src/main/meaning/launch-model.ts';
import type { ModelFiles } from '../../../src/main/meaning/model-messages.ts';
import { isAlive } from '../../support/ollama-program.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const files = findModel() as ModelFiles;

/** Tries what the model must not do, and reports what succeeded. */
const PROBE = `
const fs = require('node:fs');
const tries = {
  readsAnotherFile: () => fs.readFileSync('/etc/hostname'),
  writes: () => fs.writeFileSync(__filename + '.made', ''),
  startsProgram: () => require('node:child_process').execFileSync('true'),
  startsThread: () => new (require('node:worker_threads').Worker)('0', { eval: true }),
  readsItsModel: () => fs.statSync(${JSON.stringify(files.weights.path)}),
};
process.once('message', () => {
  const works = Object.keys(tries).filter((name) => { try { tries[name](); return true; } catch { return false; } });
  process.send({ is: 'damaged', file: JSON.stringify({ works, variables: Object.keys(process.env), pid: process.pid }) });
});
`;

test('the process of the model reads its own files only, has no environment and a low priority (R-MEAN-25, R-MEAN-22)', async () => {
  const path = join(tempFolder(), 'probe.cjs');
  writeFileSync(path, PROBE);
  process.env['HELMDECK_TEST_SECRET'] = 'a secret';
  onTestFinished(() => void delete process.env['HELMDECK_TEST_SECRET']);
  const report = await new Promise<string>((found, failed) => {
    const started = launchWithNode(path, files, {
      message: (message) => found(message.is === 'damaged' ? message.file : ''),
      exit: () => failed(new Error('The probe exited.')),
    });
    onTestFinished(() => started.kill());
    started.send({ text: '' });
  });
  const { works, variables, pid } = JSON.parse(report) as { works: string[]; variables: string[]; pid: number };
  expect(works).toEqual(['readsItsModel']);
  expect(variables.filter((name) => name !== 'NODE_CHANNEL_FD' && name !== 'NODE_CHANNEL_SERIALIZATION_MODE')).toEqual([]);
  expect(getPriority(pid)).toBeGreaterThan(getPriority());
});

test('no process of the model outlives a killed program (R-MEAN-21)', async () => {
  const program = join(tempFolder(), 'program.ts');
  const source = (name: string): string => JSON.stringify(resolve('src', name));
  writeFileSync(
    program,
    `
import { BundledEmbedder } from ${source('main/meaning/bundled-embedder.ts')};
import { findModel } from ${source('main/meaning/bundled-model.ts')};
import { launchWithNode } from ${source('main/meaning/launch-model.ts')};
import { systemClock } from ${source('core/time/clock.ts')};
import { readFileSync } from 'node:fs';
const embedder = new BundledEmbedder({ clock: systemClock, files: findModel(), launch: launchWithNode, onChange: () => {} });
await embedder.embed(['one'], { urgent: true });
console.log(readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8'));
// Killed in the middle of its work.
await embedder.embed(Array(1000).fill('word '.repeat(200)), { urgent: false });
`,
  );
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const pids = line.toString().trim().split(' ').map(Number);
  expect(pids.map(isAlive)).toEqual([true]);
  child.kill('SIGKILL');
  await expect.poll(() => pids.some(isAlive)).toBe(false);
});
