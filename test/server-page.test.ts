import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { SETTINGS } from '../src/main/config/settings-table.ts';
import { createAuthority } from './support/certificates.ts';
import { startPostgres } from './support/postgres.ts';
import { startProgram } from './support/program.ts';
import { A_KEY } from './support/store.ts';
import { tempFolder } from './support/temp-folder.ts';

/** The part of a compose file that the example uses. */
interface Compose {
  readonly services: Record<'database' | 'memory', Service>;
  readonly secrets: Record<string, { file: string }>;
  readonly volumes: Record<string, object>;
}

interface Service {
  readonly image: string;
  readonly command?: string;
  readonly environment: Record<string, string>;
  readonly secrets: string[];
  readonly volumes: string[];
  readonly ports?: string[];
}

const blockOf = (page: string, language: string): string => {
  const [, text] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'ms').exec(readFileSync(`docs/${page}`, 'utf8')) ?? [];
  if (text === undefined) throw new Error(`docs/${page} has no example in ${language}.`);
  return text;
};

/** The folder of the program in the examples, in which this repository is. */
const INSTALLED = /(\/opt|%h)\/helmdeck-memory\//g;
const here = (text: string): string => text.replaceAll(INSTALLED, `${process.cwd()}/`);

describe.each(['server.md', 'headless.md'])('the systemd unit of docs/%s', (page) => {
  const unit = blockOf(page, 'ini');
  const valuesOf = (name: string): string[] =>
    [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);

  test('sets only settings that exist, from credentials that it loads', () => {
    const loaded = new Set(valuesOf('LoadCredential').map((value) => value.split(':')[0]));
    const variables = valuesOf('Environment').flatMap((value) => value.split(' '));
    expect(variables.length).toBeGreaterThan(0);
    for (const variable of variables) {
      const [name = '', value = ''] = variable.split('=');
      expect(Object.keys(SETTINGS)).toContain(name);
      const [, credential] = /^%d\/(.*)$/.exec(value) ?? [];
      expect(credential === undefined || loaded.has(credential), variable).toBe(true);
    }
  });

  test('starts a file of this program', () => {
    const [command = ''] = valuesOf('ExecStart');
    expect(command.split(' ').slice(1)).toEqual([
      '--disable-sigusr1',
      expect.stringMatching(/\/bin\/helmdeck-memory\.js$/) as string,
      'serve',
    ]);
    for (const path of here(command)
      .split(' ')
      .filter((word) => word.startsWith('/')))
      expect(existsSync(path), path).toBe(true);
  });

  test.skipIf(spawnSync('systemd-analyze', ['--version']).error)('is accepted by systemd without a warning', () => {
    const file = join(tempFolder(), 'helmdeck-memory.service');
    writeFileSync(file, here(unit));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
    expect({ status, warnings: stderr.split('\n').filter((line) => line.includes(file)) }).toEqual({ status: 0, warnings: [] });
  });
});

describe('the compose file of docs/server.md', () => {
  // Safe: the tests below fail if the example has another shape.
  const { services, secrets, volumes } = parse(blockOf('server.md', 'yaml')) as Compose;

  test('names only settings, secrets and volumes that exist', () => {
    for (const name of Object.keys(services.memory.environment)) expect(Object.keys(SETTINGS)).toContain(name);
    for (const service of Object.values(services)) {
      for (const value of Object.values(service.environment)) {
        const [, secret] = /^\/run\/secrets\/(.*)$/.exec(value) ?? [];
        expect(secret === undefined || service.secrets.includes(secret), value).toBe(true);
      }
      for (const name of service.secrets) expect(Object.keys(secrets)).toContain(name);
      for (const [name = ''] of service.volumes.map((volume) => volume.split(':')))
        expect(name.startsWith('./') || name in volumes, name).toBe(true);
    }
    const used = Object.values(services).flatMap((service) => service.secrets);
    expect(Object.keys(secrets).toSorted()).toEqual(used.toSorted());
  });

  test('publishes the port on which the program listens, and runs a Node that can run it', () => {
    const { environment, ports, image } = services.memory;
    const port = environment['HELMDECK_SERVER_ADDR']?.split(':')[1];
    expect(ports).toEqual([`${port}:${port}`]);
    expect(image).toBe(`node:${process.versions.node.split('.')[0]}`);
  });

  test('runs the program with the SQL of the page: it creates its tables and serves other machines', async () => {
    const server = await startPostgres();
    onTestFinished(() => server[Symbol.asyncDispose]());
    const [inDefault = '', inOwn = ''] = blockOf('server.md', 'sql').split('\\connect helmdeck\n');
    for (const statement of inDefault.split(';\n').filter(Boolean)) await server.query(statement);
    const client = new pg.Client({ ...server.config, database: 'helmdeck' });
    await client.connect();
    await client.query(inOwn);
    await client.end();

    const [, url = ''] = /# (postgres:\/\/\S+)/.exec(blockOf('server.md', 'yaml')) ?? [];
    const { keyFile, certificateFile } = createAuthority().issue(['DNS:memory.test']);
    const contents: Record<string, string> = {
      'memory-key': A_KEY,
      'database-url': url.replace('<password>', 'x').replace('@database/', `@127.0.0.1:${server.port}/`),
      'tls-cert': readFileSync(certificateFile, 'utf8'),
      'tls-key': readFileSync(keyFile, 'utf8'),
    };
    const mounted = tempFolder();
    const { environment, command = '', volumes: mounts } = services.memory;
    for (const name of services.memory.secrets) writeFileSync(join(mounted, name), contents[name] ?? '', { mode: 0o600 });
    const paths: [string, string][] = [
      ['/run/secrets/', `${mounted}/`],
      ['/data', join(mounted, 'data')],
      // The port of the example can be in use.
      ['0.0.0.0:7443', '127.0.0.2:0'],
    ];
    expect(mounts.map((mount) => mount.split(':')[1])).toEqual(['/opt/helmdeck-memory', environment['HELMDECK_DATA_DIR']]);
    const local = Object.entries(environment).map(([name, value]): [string, string] => {
      const [from, to] = paths.find(([begin]) => value.startsWith(begin)) ?? ['', ''];
      return [name, to + value.slice(from.length)];
    });
    const program = await startProgram(Object.fromEntries(local), here(command).replace(/^node /, ''));
    expect(program.errorOutput).toBe('');
    expect(program.output).toMatch(/Other machines connect at https:\/\/memory\.test:\d+\./);
    expect((await program.end('SIGTERM')).code).toBe(0);
  });
});
