import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { runDesktop } from '../../../../src/main/roots/start/desktop.ts';
import { EVENTUALLY } from '../../../support/listener.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

/** A fake Electron. */
function anElectron(script: string): { electron: string; root: string; environment: NodeJS.ProcessEnv } {
  const root = tempFolder();
  const electron = join(root, 'electron');
  writeFileSync(electron, `#!/bin/sh\n${script}\n`);
  chmodSync(electron, 0o700);
  return { electron, root, environment: { ...process.env, ELECTRON_RUN_AS_NODE: '1' } };
}

beforeEach(() => {
  vi.spyOn(console, 'log').mockReturnValue();
  vi.spyOn(console, 'error').mockReturnValue();
});

describe('the desktop program, started from a terminal (R-DESK-12)', () => {
  test('runs Electron in the program folder, not as plain Node, and prints its output', async () => {
    const given = anElectron('echo "Helmdeck Memory is running. $1 ${ELECTRON_RUN_AS_NODE:-none}"');
    expect(await runDesktop(given)).toEqual({ at: 'ended', code: 0 });
    expect(console.log).toHaveBeenCalledWith(`Helmdeck Memory is running. ${given.root} none`);
  });

  test.each([
    {
      what: 'ends badly before it ran',
      script: 'echo "[1:2:ERROR] Missing X server" >&2; exit 1',
      why: 'exit code 1: [1:2:ERROR] Missing X server',
    },
    {
      what: 'lacks a library',
      script: 'echo "electron: libgtk-3.so.0: no such file" >&2; exit 127',
      why: 'exit code 127: electron: libgtk-3.so.0: no such file',
    },
    { what: 'is killed before it ran', script: 'kill -SEGV $$', why: 'SIGSEGV' },
  ])('counts as died, with the cause, if it $what', async ({ script, why }) => {
    expect(await runDesktop(anElectron(script))).toEqual({ at: 'died', why });
  });

  test('counts as died if it cannot be started', async () => {
    const { root, environment } = anElectron('');
    expect(await runDesktop({ electron: join(root, 'none'), root, environment })).toMatchObject({ at: 'died', why: /ENOENT/ });
  });

  test.each([
    { what: 'refused to start', script: 'echo "Helmdeck Memory cannot start: why" >&2; exit 1', code: 1 },
    { what: 'ended badly later', script: 'echo "Helmdeck Memory is running."; exit 7', code: 7 },
    { what: 'found another one', script: 'echo "Helmdeck Memory is already running. Its window is now open."', code: 0 },
  ])('counts as ended if it $what', async ({ script, code }) => {
    expect(await runDesktop(anElectron(script))).toEqual({ at: 'ended', code });
  });

  test('does not print log lines of Chromium', async () => {
    await runDesktop(
      anElectron('echo "[12:0101/ERROR:bus.cc] no bus" >&2; echo "a word for the owner" >&2; echo "Helmdeck Memory is running."'),
    );
    expect(vi.mocked(console.error).mock.calls).toEqual([['a word for the owner']]);
  });

  test('receives the signal when the terminal closes', async () => {
    const asked = runDesktop(anElectron('trap "exit 0" TERM; echo "Helmdeck Memory is running."; while :; do sleep 0.1; done'));
    await vi.waitFor(() => expect(console.log).toHaveBeenCalled(), EVENTUALLY);
    process.emit('SIGTERM', 'SIGTERM');
    expect(await asked).toEqual({ at: 'ended', code: 0 });
  });
});
