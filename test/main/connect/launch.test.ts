import { copyFileSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { entryFor } from '../../../src/main/connect/launch.ts';
import { localMachine } from '../../../src/main/connect/programs.ts';
import { tempFolder } from '../../support/temp-folder.ts';

test('a temporary link to Node is resolved before it is written to an entry (R-CONN-12)', () => {
  const home = tempFolder();
  const lasting = join(home, 'fnm/node-versions/v24/bin');
  mkdirSync(lasting, { recursive: true });
  copyFileSync(process.execPath, join(lasting, 'node'));
  const shell = join(home, 'fnm_multishells/1_2');
  mkdirSync(join(home, 'fnm_multishells'));
  symlinkSync(join(home, 'fnm/node-versions/v24'), shell);
  const machine = { environment: { PATH: join(shell, 'bin') }, platform: process.platform, home: () => home };
  expect(entryFor(localMachine(machine), home, { id: 'any' }).command).toBe(join(lasting, 'node'));
});
