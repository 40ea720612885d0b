import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { tempFolder } from './support/temp-folder.ts';

test('npm run dev restarts the program when a source changes, and stops with it', async () => {
  const root = tempFolder();
  mkdirSync(join(root, 'src/main/roots'), { recursive: true });
  mkdirSync(join(root, 'build/tasks'), { recursive: true });
  symlinkSync(join(process.cwd(), 'package.json'), join(root, 'package.json'));
  cpSync('build/tasks/dev.ts', join(root, 'build/tasks/dev.ts'));
  const write = (version: number): void =>
    writeFileSync(
      join(root, 'src/main/roots/start.ts'),
      `console.log('version ${version}', ...process.argv.slice(2)); setInterval(() => {}, 1000);`,
    );
  write(1);
  const dev = spawn(process.execPath, [join(root, 'build/tasks/dev.ts'), '--headless'], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void dev.kill('SIGKILL'));
  let output = '';
  dev.stdout.on('data', (text: Buffer) => (output += text.toString()));
  await expect.poll(() => output).toContain('version 1 --headless');
  write(2);
  await expect.poll(() => output).toContain('version 2 --headless');
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  dev.once('close', () => resolve());
  dev.kill('SIGTERM');
  await ended;
});
