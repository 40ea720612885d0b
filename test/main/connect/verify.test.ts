import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { localMachine } from '../../../src/main/connect/programs.ts';
import { verify } from '../../../src/main/connect/verify.ts';
import { createClientHome } from '../../support/clients.ts';

test('the bridge under test gets only listed variables of the environment, and only its own settings of the entry (R-CONN-10)', async () => {
  const { home, program } = createClientHome();
  program('helmdeck-memory', 'env > "$HOME/environment"');
  const environment = {
    PATH: join(home, 'bin'),
    HOME: home,
    LANG: 'C',
    AWS_SECRET_ACCESS_KEY: 'ours',
    NODE_EXTRA_CA_CERTS: 'ours',
    HELMDECK_MEMORY_KEY: 'ours',
  };
  const machine = { environment, platform: process.platform, home: () => home };
  const entry = {
    command: 'helmdeck-memory',
    args: ['mcp', '--client', 'claude-code'],
    env: { HELMDECK_DATA_DIR: home, HELMDECK_JWT_SECRET: 'theirs', NODE_OPTIONS: 'theirs', LD_PRELOAD: 'theirs' },
  };
  expect(
    await verify(
      entry,
      localMachine(machine, () => []),
      undefined,
    ),
  ).toMatchObject({ works: false });
  const received = readFileSync(join(home, 'environment'), 'utf8');
  expect(received).toMatch(`HELMDECK_DATA_DIR=${home}\n`);
  expect(received).toMatch('LANG=C\n');
  // The shell that prints the environment adds PWD, SHLVL and _.
  const names = [...received.matchAll(/^(\w+)=/gm)]
    .map(([, name]) => name)
    .filter((name) => !/^(PWD|OLDPWD|SHLVL|_)$/.test(name ?? ''));
  expect(new Set(names)).toEqual(new Set(['HELMDECK_DATA_DIR', 'HOME', 'LANG', 'PATH']));
});
