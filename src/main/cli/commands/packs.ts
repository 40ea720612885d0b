import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import * as z from 'zod';
import { withCliCommand } from '../../../contract/cli-command.ts';
import { Failure } from '../../../contract/failure.ts';
import type { PackResult } from '../../../contract/pack.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { columns, prettyJson, jsonText, escapeControls } from '../layout.ts';
import { formatMinute } from '../times.ts';
import { UsageError } from '../usage-error.ts';
import { parseCount } from '../values.ts';

const NAME = { says: 'The pack, such as weather.today.' };
const INPUT = { value: '<json>', says: 'What it is asked, as JSON; - reads it from standard input. {} unless told.' };
const MOST_READ = 1024 * 1024;
const AT_THE_NEXT_START = 'A program that runs takes it up when it is started anew.';

export const packList = command({
  name: 'pack list',
  says: 'Lists packs with their versions, and why one of your own is not on.',
  async run(_typed, desk) {
    const { packs, skipped = [] } = await (await desk.memory()).call('packs', {});
    const known = new Set([...packs, ...skipped].map(({ name }) => name));
    const rows: { name: string; version?: string; state: 'on' | 'off' | 'skipped'; why?: string }[] = [
      ...packs.map(({ name, version, unavailable: why }) => ({
        name,
        version,
        state: why === undefined ? ('on' as const) : ('off' as const),
        ...(why !== undefined && { why }),
      })),
      ...skipped.map(({ name, why }) => ({ name, state: 'skipped' as const, why })),
      ...(await filesOf(desk))
        .filter((name) => !known.has(name))
        .map((name) => ({
          name,
          state: 'off' as const,
          why: desk.config.packs.includes(name)
            ? 'start the program anew'
            : withCliCommand(`helmdeck-memory pack enable ${name}`),
        })),
    ];
    await desk.printResult({ packs: rows }, () =>
      columns(rows.map(({ name, version = '', state, why = '' }) => [escapeControls(name), version, state, escapeControls(why)])),
    );
  },
});

export const packRun = command({
  name: 'pack run',
  says: 'Runs a pack, and shows what it answers.',
  arguments: { name: NAME },
  options: {
    input: INPUT,
    session: { value: '<id>', says: 'Runs it in this session, with the working memory of that, which ends with the program.' },
  },
  examples: [`pack run github.list_issues --input '{"repo": "nodejs/node"}'`],
  async run({ arguments: { name }, options: { input, session } }, desk) {
    const asked = { name, input: await inputFrom(desk, input), ...(session !== undefined && { session }) };
    const result = await (await desk.memory()).call('runPack', asked);
    await desk.printResult(result, () => [prettyJson(result.output)]);
    if (!desk.json) desk.terminal.printToStderr(howItWas(result));
  },
});

export const packNew = command({
  name: 'pack new',
  says: 'Writes a pack of your own that works, for you to change.',
  arguments: { name: { says: 'Its group and name, such as weather.today.' } },
  more: ['docs/packs.md tells all that a pack can do.'],
  examples: ['pack new weather.today'],
  async run({ arguments: { name } }, desk) {
    const [
      { packFolderOf, packPathOf, requirePackName: refuseName },
      { template },
      { writeNewFile: writeFirst },
      { prepareFolder },
    ] = await Promise.all([
      import('../../own-packs/pack-file.ts'),
      import('../../own-packs/template.ts'),
      import('../../../core/file/files.ts'),
      import('../../../core/file/prepare-folder.ts'),
    ]);
    refuseName(name);
    const { folder } = desk.config;
    const path = packPathOf(folder, name);
    prepareFolder(folder);
    mkdirSync(packFolderOf(folder), { recursive: true, mode: 0o700 });
    if (existsSync(path))
      throw new Failure(
        'invalid_input',
        `There is such a pack already; choose another name, or change its file ${name}.mjs in the folder packs.`,
      );
    writeFirst(path, template(name));
    await desk.printResult({ name, path }, () => [
      `Made ${path}`,
      withCliCommand(`Try it:    helmdeck-memory pack test ${name} --input '{"who": "Ada"}' --times 2`),
      withCliCommand(`Enable it: helmdeck-memory pack enable ${name}`),
    ]);
  },
});

export const packTest = command({
  name: 'pack test',
  says: 'Tries a pack of your own, with a memory that is gone afterwards.',
  arguments: { pack: { says: 'Its name, or the path of its file.' } },
  options: { input: INPUT, times: { value: '<number>', says: 'How often, one after the other; once unless told.' } },
  more: ['It need not be enabled. What it logs, prints and says of its progress is shown as it comes.'],
  examples: [`pack test weather.today --input '{"city": "Bergen"}' --times 2`],
  async run({ arguments: { pack: asked }, options }, desk) {
    const input = await inputFrom(desk, options.input);
    const times = parseCount(options.times, '--times') ?? 1;
    const [
      { OwnPacks },
      { readListedPack: readListed, readPackFile: readPack },
      { RamStore },
      { createPackServices: createPacks },
      { systemClock },
    ] = await Promise.all([
      import('../../own-packs/own-packs.ts'),
      import('../../own-packs/pack-file.ts'),
      import('../../../core/store/ram-store.ts'),
      import('../../../core/packs/pack-services.ts'),
      import('../../../core/time/clock.ts'),
    ]);
    const file = /[/\\]|\.mjs$/.test(asked) ? readPack(resolve(asked)) : readListed(desk.config.folder, asked);
    using own = new OwnPacks();
    const pack = await own.describe(file);
    // What goes on below a line of ours stands under its text, and cannot be taken for another.
    const tell = (line: string): void =>
      desk.terminal.printToStderr(escapeControls(line).replaceAll('\n', `\n${' '.repeat(10)}`));
    const { engine, ...rest } = createPacks({
      store: new RamStore(systemClock),
      clock: systemClock,
      packs: [pack],
      log: (_name, text) => tell(`log       ${text}`),
    });
    using _packs = rest;
    const caller = { subject: 'me', client: 'pack-test', transport: 'owner', token: '', scopes: new Set(['packs:run'] as const) };
    const during = {
      signal: desk.interrupted,
      progress: (done: number, of?: number, saying = '') =>
        tell(`progress  ${done}${of === undefined ? '' : ` of ${of}`} ${saying}`),
    };
    const results: PackResult[] = [];
    for (let run = 0; run < times; run += 1) {
      const result = await engine.run(caller, { name: file.name, input }, during);
      results.push(result);
      if (!desk.json) {
        await desk.terminal.print(prettyJson(result.output));
        desk.terminal.printToStderr(howItWas(result));
      }
    }
    if (desk.json) await desk.terminal.print(jsonText({ results }));
  },
});

export const packEnable = command({
  name: 'pack enable',
  says: 'Lets agents run a pack of your own.',
  arguments: { name: NAME },
  more: [
    'Its name is added to HELMDECK_PACKS in config.json of the data folder. A pack has no files, no keys and no network, but for GET requests to the hosts that it names; these are shown.',
  ],
  async run({ arguments: { name } }, desk) {
    const [{ OwnPacks }, { createReservedCatalogue: catalogueBesideOwnPacks }, { updatePackList: changePacks }] =
      await Promise.all([
        import('../../own-packs/own-packs.ts'),
        import('../../packs.ts'),
        import('../../own-packs/pack-list.ts'),
      ]);
    const { folder, packs: enabled, fetchHosts } = desk.config;
    using own = new OwnPacks();
    // The others come first, so that of two packs with the same tool name this one is refused.
    const others = enabled.filter((other) => other !== name);
    const { packs: loaded, skipped } = await own.load(folder, [...others, name], catalogueBesideOwnPacks(fetchHosts));
    const refused = skipped.find((pack) => pack.name === name);
    if (refused) throw new Failure('invalid_input', refused.why);
    const packs = changePacks(desk.machine, (names) => [...new Set([...names, name])]);
    const hosts = loaded.find((pack) => pack.name === name)?.own?.hosts ?? [];
    await desk.printResult({ packs, hosts }, () => [
      `${name} is enabled. ${AT_THE_NEXT_START}`,
      hosts.length === 0 ? 'It names no hosts, so it asks nobody outside.' : `It may send GET requests to ${hosts.join(', ')}.`,
    ]);
  },
});

export const packDisable = command({
  name: 'pack disable',
  says: 'Takes a pack of your own from agents; its file stays.',
  arguments: { name: NAME },
  async run({ arguments: { name } }, desk) {
    if (!desk.config.packs.includes(name)) {
      throw new Failure('not_found', 'No such pack of your own is enabled; list them with: helmdeck-memory pack list');
    }
    const { updatePackList: changePacks } = await import('../../own-packs/pack-list.ts');
    const packs = changePacks(desk.machine, (names) => names.filter((one) => one !== name));
    await desk.printResult({ packs }, () => [`${escapeControls(name)} is disabled. ${AT_THE_NEXT_START}`]);
  },
});

const JsonObject = z.record(z.string(), z.unknown());

async function inputFrom(desk: CommandContext, text = '{}'): Promise<Record<string, unknown>> {
  const given = text === '-' ? ((await desk.terminal.read(MOST_READ))?.toString() ?? '') : text;
  try {
    return JsonObject.parse(JSON.parse(given));
  } catch {
    throw new UsageError(`--input must be a JSON object, such as '{"city": "Bergen"}'.`);
  }
}

/** Names of the files that stand in the folder, enabled or not. */
async function filesOf(desk: CommandContext): Promise<string[]> {
  const { packNameOf: nameOf, packFolderOf } = await import('../../own-packs/pack-file.ts');
  const path = packFolderOf(desk.config.folder);
  const names = existsSync(path) ? readdirSync(path).filter((name) => name.endsWith('.mjs')) : [];
  return names.map(nameOf).toSorted();
}

const howItWas = ({ cached, cached_until: until, duration_ms: ms }: PackResult): string =>
  cached && until !== undefined ? `Kept from an earlier run, until ${formatMinute(until)}.` : `It took ${ms} ms.`;
