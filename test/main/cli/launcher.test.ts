import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { tempFolder } from '../../support/temp-folder.ts';
import { nodes, olderNode } from './nodes.ts';

const repository = process.cwd();

const PRINTS = `console.log(JSON.stringify({ program: import.meta.filename.split('/').at(-1), node: process.version, args: process.argv.slice(2) }));`;

/** A package in a folder whose path contains spaces. Only its launcher is the real one. */
function aPackage(
  files: Record<string, string> = { 'src/main/roots/cli.ts': `const typed: string = 'typed'; void typed; ${PRINTS}` },
  at = 'a package',
): string {
  const root = join(tempFolder(), at);
  for (const [name, text] of Object.entries({ 'package.json': '{"type":"module"}', ...files })) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  mkdirSync(join(root, 'bin'));
  copyFileSync('bin/helmdeck-memory.js', join(root, 'bin/helmdeck-memory.js'));
  symlinkSync(join(repository, 'node_modules'), join(root, 'node_modules'));
  return root;
}

function launch(
  node: string,
  file: string,
  { args = [], environment = {}, path = '' }: { args?: string[]; environment?: Record<string, string>; path?: string } = {},
) {
  const { status, stdout, stderr } = spawnSync(node, [file, ...args], {
    encoding: 'utf8',
    cwd: tempFolder(),
    env: { PATH: path, ...environment },
  });
  return {
    status,
    stderr,
    said: stdout === '' ? undefined : (JSON.parse(stdout) as { program: string; node: string; args: string[] }),
  };
}

describe.each(nodes)('the launcher under $name', ({ node }) => {
  test('starts the program with a suitable Node from any folder, passes arguments unchanged, and prints no warning', () => {
    const args = ['remember', 'a key', '', '--x=$HOME', '"quoted"', 'läßt\nsich'];
    const { status, stderr, said } = launch(node, join(aPackage(), 'bin/helmdeck-memory.js'), { args });
    expect({ status, stderr, said }).toEqual({ status: 0, stderr: '', said: { program: 'cli.ts', node: process.version, args } });
  });

  test('starts the program through a link such as npm creates', () => {
    const link = join(tempFolder(), 'node_modules/.bin/helmdeck-memory');
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(aPackage(), 'bin/helmdeck-memory.js'), link);
    expect(launch(node, link)).toMatchObject({ status: 0, stderr: '', said: { program: 'cli.ts' } });
  });

  test.each(['--no-experimental-strip-types', '--max-old-space-size=200', '--no-warnings'])(
    'is not confused by NODE_OPTIONS=%s',
    (options) => {
      if (spawnSync(node, ['--version'], { env: { NODE_OPTIONS: options } }).status !== 0) return;
      expect(launch(node, join(aPackage(), 'bin/helmdeck-memory.js'), { environment: { NODE_OPTIONS: options } })).toMatchObject({
        status: 0,
        stderr: '',
      });
    },
  );

  test('prefers the build, unless the source is newer', () => {
    const root = aPackage({
      'src/main/roots/cli.ts': PRINTS,
      'out/main/cli.cjs': PRINTS.replace('import.meta.filename', '__filename'),
    });
    expect(launch(node, join(root, 'bin/helmdeck-memory.js')).said).toMatchObject({ program: 'cli.cjs' });
    utimesSync(join(root, 'out/main/cli.cjs'), 1, 1);
    expect(launch(node, join(root, 'bin/helmdeck-memory.js')).said).toMatchObject({ program: 'cli.ts' });
  });

  test('passes the exit code on', () => {
    const root = aPackage({ 'src/main/roots/cli.ts': 'process.exit(7)' });
    expect(launch(node, join(root, 'bin/helmdeck-memory.js'))).toMatchObject({ status: 7, stderr: '' });
  });

  test('says in one line which file of the installation is missing', () => {
    const root = aPackage({ 'src/main/roots/cli.ts': PRINTS }, 'node_modules/helmdeck-memory');
    const { status, stderr } = launch(node, join(root, 'bin/helmdeck-memory.js'));
    expect(status).toBe(70);
    expect(stderr).toMatch(/^helmdeck-memory is incomplete: .*cli\.cjs is missing\. .*\n$/);
  });
});

describe.skipIf(olderNode === undefined)('an older Node', () => {
  const alone = (): string => {
    const root = join(tempFolder(), 'alone');
    mkdirSync(join(root, 'bin'), { recursive: true });
    mkdirSync(join(root, 'src/main/roots'), { recursive: true });
    writeFileSync(join(root, 'package.json'), '{"type":"module"}');
    writeFileSync(join(root, 'src/main/roots/cli.ts'), PRINTS);
    copyFileSync('bin/helmdeck-memory.js', join(root, 'bin/helmdeck-memory.js'));
    return join(root, 'bin/helmdeck-memory.js');
  };

  test('finds a newer Node by HELMDECK_NODE or in the PATH', () => {
    expect(launch(olderNode ?? '', alone(), { environment: { HELMDECK_NODE: process.execPath } })).toMatchObject({
      status: 0,
      stderr: '',
      said: { node: process.version },
    });
    expect(
      launch(olderNode ?? '', alone(), { path: `/nowhere:${dirname(olderNode ?? '')}:${dirname(process.execPath)}` }),
    ).toMatchObject({ status: 0, said: { node: process.version } });
  });

  test('says in one line that no newer Node was found, and how to install one', () => {
    for (const environment of [{}, { HELMDECK_NODE: '/nowhere/node' }]) {
      const { status, stderr } = launch(olderNode ?? '', alone(), { path: dirname(olderNode ?? ''), environment });
      expect(status).toBe(70);
      expect(stderr).toMatch(/^helmdeck-memory needs Node 24 or newer. This is v\d+.*nodejs\.org.*HELMDECK_NODE=.*\n$/);
      expect(stderr.includes(', nor in HELMDECK_NODE')).toBe('HELMDECK_NODE' in environment);
    }
  });
});

/** In this Node, a checkout that needs another one. */
const WITHOUT_TYPES = '--no-experimental-strip-types';

test.skipIf(process.platform === 'win32')(
  'runs no Node that another user could have placed, and asks none with the key (R-CONN-07)',
  () => {
    const root = aPackage();
    // It would hold the bundled Node.
    unlinkSync(join(root, 'node_modules'));
    const path = ['open', 'file', 'linked', 'foreign', 'safe'].map((name) => {
      const folder = join(tempFolder(), name);
      mkdirSync(folder);
      const node = join(folder, name === 'linked' ? 'real' : 'node');
      writeFileSync(node, `#!/bin/sh\n/usr/bin/env > '${join(root, name)}'\necho v12.0.0\n`);
      chmodSync(node, name === 'file' ? 0o777 : 0o755);
      if (name === 'linked') symlinkSync('real', join(folder, 'node'));
      if (name === 'linked') chmodSync(node, 0o777);
      chmodSync(folder, name === 'open' ? 0o777 : 0o755);
      if (name === 'foreign' && process.getuid?.() === 0) chownSync(node, 65_534, 65_534);
      else if (name === 'foreign') chmodSync(node, 0o777);
      return folder;
    });
    launch(process.execPath, join(root, 'bin/helmdeck-memory.js'), {
      path: path.join(delimiter),
      environment: { NODE_OPTIONS: WITHOUT_TYPES, HELMDECK_MEMORY_KEY: 'a key', HOME: '/' },
    });
    expect(['open', 'file', 'linked', 'foreign', 'safe'].filter((name) => existsSync(join(root, name)))).toEqual(['safe']);
    expect(readFileSync(join(root, 'safe'), 'utf8')).toMatch(/^HOME=/m);
    expect(readFileSync(join(root, 'safe'), 'utf8')).not.toContain('HELMDECK_');
  },
);

test('npm installs the command under its name', () => {
  const { bin } = JSON.parse(readFileSync('package.json', 'utf8')) as { bin: Record<string, string> };
  expect(bin).toEqual({ 'helmdeck-memory': 'bin/helmdeck-memory.js' });
});
