import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Confinement, findConfinement, NO_CONFINEMENT } from '../../../src/main/own-packs/confinement.ts';
import { OwnPacks } from '../../../src/main/own-packs/own-packs.ts';
import { packText } from '../../support/own-packs.ts';
import { type Escape, escapes as everyEscape, REACH } from './escapes.ts';

/** Each escape starts up to four processes: unit tests run a few of them, `npm run lane:soak` all. */
const escapes = everyEscape.filter(({ always }) => always === true || process.env['HELMDECK_TEST_ESCAPES'] === 'all');

/** Created in hooks, where no per-test clean-up runs. */
const root = mkdtempSync(join(tmpdir(), 'helmdeck-escapes-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const tempFolder = (): string => mkdtempSync(join(root, 'x'));

interface Place {
  readonly target: string;
  readonly port: number;
  readonly secret: string;
  readonly parent: number;
}

/** What the escape achieved; empty if nothing. */
async function effectOf(act: (place: Place) => Promise<string>): Promise<string> {
  const folder = tempFolder();
  const secret = join(folder, 'secret');
  writeFileSync(secret, 'secret', { mode: 0o600 });
  let heard = 0;
  const tcp = createServer((socket) => {
    heard += 1;
    socket.on('error', () => undefined).destroy();
  }).listen(0, '127.0.0.1');
  await once(tcp, 'listening');
  const { port } = tcp.address() as AddressInfo;
  const udp = createSocket('udp4', () => (heard += 1)).bind(port, '127.0.0.1');
  await once(udp, 'listening');
  const target = join(folder, 'target');
  try {
    const answer = await act({ target, port, secret, parent: process.pid });
    const effects = [
      lstatSync(target, { throwIfNoEntry: false }) !== undefined && 'it wrote a file',
      heard > 0 && 'it reached a port',
      answer.startsWith('reached') && answer,
    ];
    return effects.filter((effect) => effect !== false).join(', ');
  } finally {
    tcp.close();
    udp.close();
  }
}

const ways = `const ways = { ${escapes.map(({ name, code }) => `${JSON.stringify(name)}: async (ec, { target, port, secret, parent }) => { ${code} }`).join(',\n')} };`;

/** Runs the escape in plain Node, with or without a sandbox. */
const inNode =
  ({ name }: Escape, { wrap: around }: Confinement = NO_CONFINEMENT) =>
  async (place: Place): Promise<string> => {
    const program = join(tempFolder(), 'program.mjs');
    writeFileSync(
      program,
      `${REACH}\n${ways}
      const ec = { log: () => undefined, signal: new AbortController().signal };
      const place = JSON.parse(process.argv[2]);
      const answer = await ways[${JSON.stringify(name)}](ec, place);
      process.stdout.write(String(answer), () => process.exit());`,
    );
    const [command = '', ...args] = around([process.execPath, '--no-warnings', program, JSON.stringify(place)], [program]);
    const begun = performance.now();
    const child = spawn(command, args, { env: {}, stdio: ['ignore', 'pipe', 'ignore'] });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
    // Some escapes leave a Node process that can no longer exit.
    const stop = setInterval(() => {
      if (existsSync(place.target) || performance.now() - begun > 20_000) child.kill('SIGKILL');
    }, 50);
    await once(child, 'close');
    clearInterval(stop);
    return said;
  };

const outcomes = async (
  all: readonly Escape[],
  act: (escape: Escape) => (place: Place) => Promise<string>,
): Promise<Map<string, string>> => {
  const found = new Map<string, string>();
  const waiting = [...all];
  const work = async (): Promise<void> => {
    for (let escape = waiting.shift(); escape; escape = waiting.shift()) found.set(escape.name, await effectOf(act(escape)));
  };
  await Promise.all([work(), work(), work()]);
  return found;
};

const TIME = 240_000;

describe.skipIf(process.platform === 'win32')('in plain Node', () => {
  let effects: Map<string, string>;
  const shown = escapes.filter(({ unshown }) => unshown === undefined);

  beforeAll(async () => {
    effects = await outcomes(shown, (escape) => inNode(escape));
  }, TIME);

  test.each(shown)('this escape works, so the tests below can fail: $name', ({ name }) => {
    expect(effects.get(name)).not.toBe('');
  });
});

const system = await findConfinement();

describe.skipIf(system.name === 'none')('the sandbox of the operating system alone stops (R-PACK-34):', () => {
  let effects: Map<string, string>;
  const outward = escapes.filter(({ within }) => within !== true);

  beforeAll(async () => {
    effects = await outcomes(outward, (escape) => inNode(escape, system));
  }, TIME);

  test.each(outward)('$name', ({ name }) => {
    expect(effects.get(name)).toBe('');
  });
});

describe.each([
  ['without a sandbox of the operating system', NO_CONFINEMENT],
  ['with it', system],
] as const)('a pack, %s, cannot escape by (R-PACK-34):', (_how, confined) => {
  const absent = confined === system && system.name === 'none';
  let effects: Map<string, string>;

  beforeAll(async () => {
    if (absent) return;
    using own = new OwnPacks({ findConfinement: () => Promise.resolve(confined) });
    const text = packText({
      before: REACH + ways,
      input: 'name: z.string(), place: z.any()',
      handler: `const answer = await ways[input.name](ec, input.place).catch(String);
        return { said: String(breach ?? answer) };`,
    });
    const pack = await own.describe({ name: 'test.own', source: text, revision: 'x' });
    const context = {
      caller: { subject: 'me', client: 'x' },
      log: () => undefined,
      progress: () => undefined,
      doNotCache: () => undefined,
    };
    effects = await outcomes(escapes, ({ name }) => async (place) => {
      const signal = AbortSignal.timeout(30_000);
      const answer = await pack
        .handler({ ...context, signal, input: { name, place } } as never)
        .catch((error: unknown) => ({ said: `failed: ${String(error)}` }));
      return (answer as { said: string }).said;
    });
  }, TIME);

  test.for(escapes)('$name', ({ name }, { skip }) => {
    if (absent) skip('This machine has no working bubblewrap or seatbelt.');
    expect(effects.get(name)).toBe('');
  });
});
