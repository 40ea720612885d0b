import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Confinement, findConfinement, NO_CONFINEMENT } from '../../../src/main/own-packs/confinement.ts';
import { findRuntime, type Runtime } from '../../../src/main/own-packs/runtime.ts';
import { startFakeInternet } from '../../support/fake-internet.ts';
import { openMemoryWithOwnPack } from '../../support/own-packs.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { REACH } from './escapes.ts';

/** Walks the globals, the arguments of the handler, and every result, error and callback argument that a pack can obtain. */
const handler = `
  const look = (...values) => values.forEach((value) => reach(value, '/nowhere/file', Infinity));
  const attempt = async (act) => { try { const result = act(); look(result); look(await result); } catch (error) { look(error); } };
  const callback = (done) => function (...given) { look(this, given); done?.(); };
  look(globalThis, ec, z, definePack, import.meta);
  await ec.memory.store('k', { list: [{ a: 1 }] }, { tags: ['t'] });
  for (const act of [
    () => ec.memory.recall('k'), () => ec.memory.list(), () => ec.memory.context(), () => ec.memory.delete('none'),
    () => ec.memory.recall(5), () => ec.memory.store('k', undefined), () => ec.memory.store('k', { a: 1n }),
    () => ec.log({}), () => ec.progress(1, 2, 'x'), () => ec.doNotCache(), () => console.log({}, new Error('x')),
    () => fetch('https://api.example.com/'), () => fetch('https://other.example.com/'), () => fetch('x', { method: 'POST' }),
    async () => [...(await fetch('https://api.example.com/')).headers], async () => (await fetch('https://api.example.com/')).json(),
    () => import('node:fs'), () => import('x', { with: { type: 'odd' } }), () => import('x', 5),
    () => import({ toString() { throw new Error('x'); } }),
    () => new URL('https://example.com/?a=1'), () => new URL('https://example.com/?a=1').searchParams.entries(),
    () => new URL('no address'), () => Object.assign(new URL('https://example.com'), { href: 'x' }),
    () => new TextEncoder().encode('x'), () => new TextDecoder().decode(new Uint8Array(2)), () => new TextDecoder().decode(5),
    () => crypto.subtle.digest('SHA-256', new Uint8Array(2)), () => crypto.getRandomValues(new Uint8Array(2)),
    () => crypto.getRandomValues({ byteLength: -1 }), () => crypto.randomUUID(), () => atob('é'), () => btoa('é'), () => setTimeout('x'),
    () => new Promise((done) => setTimeout(callback(done), 1, {})), () => new Promise((done) => queueMicrotask(callback(done))),
    () => new Promise((done) => setImmediate(callback(done))), () => AbortSignal.timeout(1), () => AbortSignal.abort().reason,
    () => ec.signal.addEventListener('abort', callback()), () => z.string().parse(5), () => z.toJSONSchema(z.object({})),
    () => { const down = () => down(); down(); }, () => new Error('x').stack, () => Error.prepareStackTrace,
    () => Function('return this')(), () => eval('globalThis'), () => (async () => {}).constructor('return 1')(),
  ]) await attempt(act);
  // The walk calls getters of zod, which then cannot check an output.
  ec.log(breach ?? 'nothing of another realm');`;

async function openPack(confinement: Confinement, runtime: () => Runtime = findRuntime) {
  const internet = await startFakeInternet();
  internet.respond('api.example.com', (_request, response) => response.end('{"a":[1]}'));
  const more = `memory: {}, hosts: ['api.example.com'],`;
  const { run, logged } = await openMemoryWithOwnPack(
    { before: REACH, more, handler },
    { egress: internet.egress, findConfinement: () => Promise.resolve(confinement), findRuntime: runtime },
  );
  return async (): Promise<string | undefined> => {
    await run().catch(() => undefined);
    return logged.at(-1);
  };
}

const system = await findConfinement();

describe('no object that a pack can reach belongs to the realm of Node (R-PACK-34)', () => {
  test.each([
    ['without a sandbox of the operating system', NO_CONFINEMENT],
    ['with it', system],
  ])('%s', async (_how, confinement) => {
    const walk = await openPack(confinement);
    expect(await walk()).toBe('nothing of another realm');
  });

  const folder = resolve('src/main/own-packs');
  const breaches: [what: string, changes: [file: string, from: string, to: string][]][] = [
    [
      'the function that calls the process is a global',
      [['realm/realm.ts', 'connectHost(call);', `connectHost(call); Reflect.set(globalThis, 'leak', call);`]],
    ],
    ['an error of the process is not replaced', [['realm/host.ts', '} catch {', '} finally {']]],
    [
      'a message is parsed by the process',
      [
        ['child.ts', 'receive(line);', 'receive(JSON.parse(line));'],
        ['realm/realm.ts', 'JSON.parse(line) as ProgramMessage', 'line as unknown as ProgramMessage'],
      ],
    ],
    [
      'import() throws an error of the process',
      [['child.ts', 'importModuleDynamically: () => refuseImport()', `importModuleDynamically: () => { throw new Error('x'); }`]],
    ],
  ];

  test('is tested by a walk that notices every planted breach', async () => {
    let runtime = findRuntime();
    const { args, files } = runtime;
    const walk = await openPack(NO_CONFINEMENT, () => runtime);
    for (const [what, changes] of breaches) {
      const copy = tempFolder();
      cpSync(folder, copy, { recursive: true });
      for (const [file, from, to] of changes) {
        const text = readFileSync(join(copy, file), 'utf8');
        expect(text, what).toContain(from);
        writeFileSync(join(copy, file), text.replace(from, to));
      }
      const [, zod = ''] = args;
      runtime = { main: join(copy, 'child.ts'), args: [join(copy, 'realm/realm.ts'), zod], files: [...files, copy] };
      expect(await walk(), what).toMatch(/^reached an object of another realm/);
    }
  });
});
