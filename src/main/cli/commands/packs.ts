import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import * as z from 'zod';
import { withCliCommand } from '../../../contract/cli-command.ts';
import { Failure } from '../../../contract/failure.ts';
import type { PackResult } from '../../../contract/pack.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { UsageError } from '../errors.ts';
import { escapeControls, jsonText, prettyJson } from '../layout.ts';
import { formatMinute } from '../times.ts';
import { given, parseCount } from '../values.ts';

const NAME = { description: 'The name of the pack, such as weather.today.' };
const INPUT = {
  value: '<json>',
  description: 'The input for the pack, as JSON. With -, the input is read from standard input. Default: {}.',
};
const MAX_INPUT_BYTES = 1024 * 1024;
const RESTART = 'Restart Helmdeck Memory if it is running.';

export const packList = command({
  name: 'pack list',
  description: 'Lists packs with their versions. If a pack is off, shows the reason.',
  async run(_typed, context) {
    const { packs, skipped = [] } = await context.call('packs', {});
    const known = new Set([...packs, ...skipped].map(({ name }) => name));
    const rows: { name: string; version?: string; state: 'on' | 'off' | 'skipped'; why?: string }[] = [
      ...packs.map(({ name, version, unavailable: why }) => ({
        name,
        version,
        state: why === undefined ? ('on' as const) : ('off' as const),
        ...(why !== undefined && { why }),
      })),
      ...skipped.map(({ name, why }) => ({ name, state: 'skipped' as const, why })),
      ...(await packNamesInFolder(context))
        .filter((name) => !known.has(name))
        .map((name) => ({
          name,
          state: 'off' as const,
          why: context.config.packs.includes(name)
            ? 'restart Helmdeck Memory'
            : withCliCommand(`helmdeck-memory pack enable ${name}`),
        })),
    ];
    await context.printTable(
      { packs: rows },
      rows.map(({ name, version = '', state, why = '' }) => [escapeControls(name), version, state, escapeControls(why)]),
    );
  },
});

export const packRun = command({
  name: 'pack run',
  description: 'Runs a pack and shows its output.',
  arguments: { name: NAME },
  options: {
    input: INPUT,
    session: {
      value: '<id>',
      description:
        'Runs the pack in this session, with the working memory of the session. Working memory is lost when the program exits.',
    },
  },
  examples: [`pack run github.list_issues --input '{"repo": "nodejs/node"}'`],
  async run({ arguments: { name }, options: { input, session } }, context) {
    const result = await context.call('runPack', { name, input: await readInput(context, input), ...given({ session }) });
    await context.printResult(result, () => [prettyJson(result.output)]);
    context.hint(formatTiming(result));
  },
});

export const packNew = command({
  name: 'pack new',
  description: 'Creates a working example pack for you to change.',
  arguments: { name: { description: 'Group and name of the new pack, such as weather.today.' } },
  details: ['docs/packs.md describes everything that a pack can do.'],
  examples: ['pack new weather.today'],
  async run({ arguments: { name } }, context) {
    const [{ packFolderOf, packPathOf, requirePackName }, { template }, { writeNewFile }, { prepareFolder }] = await Promise.all([
      import('../../own-packs/pack-file.ts'),
      import('../../own-packs/template.ts'),
      import('../../../core/file/files.ts'),
      import('../../../core/file/prepare-folder.ts'),
    ]);
    requirePackName(name);
    const { folder } = context.config;
    const path = packPathOf(folder, name);
    prepareFolder(folder);
    mkdirSync(packFolderOf(folder), { recursive: true, mode: 0o700 });
    if (existsSync(path))
      throw new Failure(
        'invalid_input',
        `This pack already exists. Choose another name, or edit ${name}.mjs in the packs folder.`,
      );
    writeNewFile(path, template(name));
    await context.printResult({ name, path }, () => [
      `Created ${path}`,
      withCliCommand(`Try it:    helmdeck-memory pack test ${name} --input '{"who": "Ada"}' --times 2`),
      withCliCommand(`Enable it: helmdeck-memory pack enable ${name}`),
    ]);
  },
});

export const packTest = command({
  name: 'pack test',
  description: 'Runs one of your own packs with a temporary memory.',
  arguments: { pack: { description: 'Name or file path of the pack.' } },
  options: {
    input: INPUT,
    times: { value: '<number>', description: 'Number of runs, one after another. Default: 1.' },
  },
  details: [
    'The pack does not have to be enabled. The command shows the log, the progress and the output of the pack as they arrive.',
  ],
  examples: [`pack test weather.today --input '{"city": "Bergen"}' --times 2`],
  async run({ arguments: { pack: named }, options }, context) {
    const input = await readInput(context, options.input);
    const times = parseCount(options.times, '--times') ?? 1;
    const [{ OwnPacks }, { readListedPack, readPackFile }, { RamStore }, { createPackServices }, { systemClock }] =
      await Promise.all([
        import('../../own-packs/own-packs.ts'),
        import('../../own-packs/pack-file.ts'),
        import('../../../core/store/ram-store.ts'),
        import('../../../core/packs/pack-services.ts'),
        import('../../../core/time/clock.ts'),
      ]);
    const file = /[/\\]|\.mjs$/.test(named) ? readPackFile(resolve(named)) : readListedPack(context.config.folder, named);
    using own = new OwnPacks();
    const pack = await own.describe(file);
    // Indent every line after the first, so that a pack cannot imitate the output of this command.
    const print = (line: string): void =>
      context.terminal.printToStderr(escapeControls(line).replaceAll('\n', `\n${' '.repeat(10)}`));
    const { engine, ...rest } = createPackServices({
      store: new RamStore(systemClock),
      clock: systemClock,
      packs: [pack],
      log: (_name, text) => print(`log       ${text}`),
    });
    using _packs = rest;
    const caller = { subject: 'me', client: 'pack-test', transport: 'owner', token: '', scopes: new Set(['packs:run'] as const) };
    const callContext = {
      signal: context.interrupted,
      progress: (done: number, of?: number, saying = '') =>
        print(`progress  ${done}${of === undefined ? '' : ` of ${of}`} ${saying}`),
    };
    const results: PackResult[] = [];
    for (let run = 0; run < times; run += 1) {
      const result = await engine.run(caller, { name: file.name, input }, callContext);
      results.push(result);
      if (!context.json) await context.terminal.print(prettyJson(result.output));
      context.hint(formatTiming(result));
    }
    if (context.json) await context.terminal.print(jsonText({ results }));
  },
});

export const packEnable = command({
  name: 'pack enable',
  description: 'Allows agents to run one of your own packs.',
  arguments: { name: NAME },
  details: [
    'Adds the name to HELMDECK_PACKS in config.json in the data folder. A pack cannot access files, keys or the network, except for GET requests to the hosts that it declares. This command shows those hosts.',
  ],
  async run({ arguments: { name } }, context) {
    const [{ OwnPacks }, { createReservedCatalogue }, { updatePackList }] = await Promise.all([
      import('../../own-packs/own-packs.ts'),
      import('../../egress/network-packs.ts'),
      import('../../own-packs/pack-list.ts'),
    ]);
    const { folder, packs: enabled, fetchHosts } = context.config;
    using own = new OwnPacks();
    // Load the new pack last, so that the new pack is rejected if an enabled pack has the same tool name.
    const others = enabled.filter((other) => other !== name);
    const { packs: loaded, skipped } = await own.load(folder, [...others, name], createReservedCatalogue(fetchHosts));
    const refused = skipped.find((pack) => pack.name === name);
    if (refused) throw new Failure('invalid_input', refused.why);
    const packs = updatePackList(context.host, (names) => [...new Set([...names, name])]);
    const hosts = loaded.find((pack) => pack.name === name)?.own?.hosts ?? [];
    await context.printResult({ packs, hosts }, () => [
      `${name} is enabled. ${RESTART}`,
      hosts.length === 0
        ? 'The pack declares no hosts, so it cannot send requests.'
        : `The pack can send GET requests to ${hosts.join(', ')}.`,
    ]);
  },
});

export const packDisable = command({
  name: 'pack disable',
  description: 'Stops agents from running one of your own packs. Keeps the pack file.',
  arguments: { name: NAME },
  async run({ arguments: { name } }, context) {
    if (!context.config.packs.includes(name)) {
      throw new Failure('not_found', 'You have not enabled a pack with this name. List packs with: helmdeck-memory pack list');
    }
    const { updatePackList } = await import('../../own-packs/pack-list.ts');
    const packs = updatePackList(context.host, (names) => names.filter((one) => one !== name));
    await context.printResult({ packs }, () => [`${escapeControls(name)} is disabled. ${RESTART}`]);
  },
});

const JsonObject = z.record(z.string(), z.unknown());

async function readInput(context: CommandContext, option = '{}'): Promise<Record<string, unknown>> {
  const text = option === '-' ? await context.terminal.readText(MAX_INPUT_BYTES) : option;
  try {
    return JsonObject.parse(JSON.parse(text));
  } catch {
    throw new UsageError(`--input must be a JSON object, such as '{"city": "Bergen"}'.`);
  }
}

async function packNamesInFolder(context: CommandContext): Promise<string[]> {
  const { packNameOf, packFolderOf } = await import('../../own-packs/pack-file.ts');
  const path = packFolderOf(context.config.folder);
  const names = existsSync(path) ? readdirSync(path).filter((name) => name.endsWith('.mjs')) : [];
  return names.map(packNameOf).toSorted();
}

const formatTiming = ({ cached, cached_until: until, duration_ms: ms }: PackResult): string =>
  cached && until !== undefined ? `Cached from an earlier run, valid until ${formatMinute(until)}.` : `Took ${ms} ms.`;
