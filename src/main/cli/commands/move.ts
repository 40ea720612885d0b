import { Failure } from '../../../contract/failure.ts';
import { parseDatabaseUrl } from '../../../core/store/postgres/database-url.ts';
import { memoryPlace } from '../../config/config.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { UsageError } from '../errors.ts';
import { formatCount, formatEntries } from '../layout.ts';

export const move = command({
  name: 'move',
  description: 'Moves the memory between its file and a PostgreSQL database.',
  options: {
    to: {
      value: '<target>',
      description:
        '`database` for the database of HELMDECK_DATABASE_URL, the address of a database (postgres://…), or `file` for the data folder.',
    },
  },
  details: [
    'Helmdeck Memory must not be running.',
    'Everything moves: facts, history, activity, tokens and keys. Every entry is compared after it was written. The source stays as it is until the end, and is then marked as moved, so that it is not used by mistake.',
    'After an interruption, run the same command again. An address with a password is refused, because other users can see command lines: set HELMDECK_DATABASE_URL_FILE, and use `--to database`.',
  ],
  examples: ['move --to database', 'move --to "postgres://helmdeck@db.example/helmdeck"', 'move --to file'],
  async run({ options: { to } }, context) {
    const { toFile, database } = targetOf(to, context);
    await context.requireNoProgram();
    const { folder } = context.config;
    const places = { file: memoryPlace({ folder, database: undefined }), server: memoryPlace({ folder, database }) };
    const [{ moveToFile, moveToServer }, { systemClock: clock }, { keySources }] = await Promise.all([
      import('../../../core/upkeep/move.ts'),
      import('../../../core/time/clock.ts'),
      import('../../../core/crypto/keys/key-sources.ts'),
    ]);
    const sources = keySources({ environment: context.environment, folder, desktop: false });
    using shown = context.terminal.showProgress('Moving the memory…');
    const progress = (rows: number): void =>
      shown.update(`Moving the memory: ${formatCount(rows, 'entry', 'entries')} compared…`);
    const options = { folder, database, places, clock, sources, progress };
    const { entries, broken, replaced, wasFinished } = await (toFile ? moveToFile(options) : moveToServer(options));
    shown[Symbol.dispose]();
    const [from, at] = toFile ? [places.server, places.file] : [places.file, places.server];
    await context.printResult({ entries, broken, from, to: at, ...(replaced !== undefined && { replaced }) }, () => [
      wasFinished
        ? `An earlier command has moved this memory. It is now ${at}, with ${formatEntries(entries)}.`
        : `Moved and compared ${formatEntries(entries)}. The memory is now ${at}.`,
      ...(broken > 0 ? [`The seal of ${formatEntries(broken)} is broken, here as before.`] : []),
      `The earlier copy is marked as moved and cannot be opened: ${from}.`,
      ...(replaced === undefined ? [] : [`The earlier file was moved to ${replaced}`]),
    ]);
    const isSet = context.config.database !== undefined;
    if (toFile) context.hint('Unset HELMDECK_DATABASE_URL before you start Helmdeck Memory.');
    else if (!isSet) context.hint('Set HELMDECK_DATABASE_URL or HELMDECK_DATABASE_URL_FILE before you start Helmdeck Memory.');
  },
});

type Database = NonNullable<CommandContext['config']['database']>;

function targetOf(to: string | undefined, { config }: CommandContext): { toFile: boolean; database: Database } {
  if (to !== undefined && /^postgres(?:ql)?:/.test(to)) {
    const given = parseDatabaseUrl(to);
    if (given.connection.password === undefined) return { toFile: false, database: given };
    throw new UsageError(
      'Other users can see a password on the command line, so change it. Then write the address to a file, name that file with HELMDECK_DATABASE_URL_FILE, and use --to database.',
    );
  }
  if (to !== 'database' && to !== 'file') {
    throw new UsageError(
      'Say where to move the memory: --to database, --to file, or --to with an address like postgres://host/database.',
    );
  }
  if (config.database) return { toFile: to === 'file', database: config.database };
  throw new Failure('invalid_input', 'Set HELMDECK_DATABASE_URL or HELMDECK_DATABASE_URL_FILE to the address of the database.');
}
