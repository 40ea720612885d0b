import { describeFileFailure, type StoreStatus } from '../../../contract/status.ts';
import { type Config, memoryPlace } from '../../config/config.ts';
import { describeUnreachable, readUnreachable } from '../../roots/unreachable.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { columns, escapeControls, formatCount, formatEntries } from '../layout.ts';
import { isMemoryMissing, type MemoryConnection } from '../memory-connection.ts';
import { clockLines } from './clock.ts';
import { keyExit, keyLines } from './key.ts';

export const status = command({
  name: 'status',
  description: 'Shows whether the program is running, and the state of memory and key.',
  details: ['The exit code is 4 if the key is unavailable.'],
  async run(_typed, context) {
    const { folder, packs: listed } = context.config;
    const open = async (): Promise<MemoryConnection | undefined> =>
      (await isMemoryMissing(context.config, context.environment)) ? undefined : context.memory();
    const memory = await open().catch((error: unknown) => {
      const unreachable = readUnreachable(folder);
      if (unreachable) return unreachable;
      throw error;
    });
    if (!memory) {
      await context.printResult({ folder, program: null }, () =>
        columns([
          ['program', 'not running'],
          ['memory', `none yet in ${memoryPlace(context.config)}`],
        ]),
      );
      return exits.done.code;
    }
    if ('at' in memory) {
      await context.printResult({ folder, program: memory }, () => [
        ...columns([
          ['program', `running (process ${memory.pid}), ${memory.at === 'paused' ? 'paused' : 'not reachable'}`],
          ['memory', `${memoryPlace(context.config)}, in use by the program`],
        ]),
        describeUnreachable(memory),
      ]);
      return exits.done.code;
    }
    const { store, facts, inbox = 0, embeddings, meaning, listener } = await memory.call('status', {});
    const server = listener.at === 'listening' ? listener.server_url : undefined;
    // Query packs only if the owner enabled a pack, because the query can start a process for each pack.
    const { packs = [], skipped = [] } = listed.length === 0 ? {} : await memory.call('packs', {});
    const own = packs.filter((pack) => pack.own).map(({ name }) => name);
    const [key = '', ...remedy] = keyLines(store.key);
    const disagrees = store.clock.at === 'ahead' || store.clock.at === 'behind';
    const [clockLine = '', ...clockRemedy] = clockLines(store.clock);
    await context.printResult(
      { store, facts, inbox, embeddings, meaning, folder, program: memory.program ?? null, packs: own, skipped },
      () => [
        ...columns([
          ['program', memory.program ? `running at ${memory.program.url} (process ${memory.program.pid})` : 'not running'],
          ...(server === undefined ? [] : [['server', `other machines connect at ${server}`]]),
          ['memory', describeMemory(store.kept, context.config, memory.program !== undefined)],
          ['key', key],
          ['facts', String(facts)],
          ...(inbox > 0 ? [['inbox', `${formatCount(inbox, 'write')} waiting; see: helmdeck-memory inbox`]] : []),
          ...(own.length > 0 ? [['packs', own.join(', ')]] : []),
          ...(embeddings.at === 'off' || (embeddings.at === 'ready' && embeddings.whose === 'bundled')
            ? []
            : [
                [
                  'embeddings',
                  embeddings.at === 'failed' ? `${embeddings.why} ${embeddings.remedy}` : embeddings.at.replace('_', ' '),
                ],
              ]),
          ...(meaning.at === 'failed' ? [['meaning', `${meaning.why} ${meaning.remedy}`]] : []),
          ...skipped.map(({ name, why }) => ['packs', escapeControls(`${name} was skipped: ${why}`)]),
          ...(store.file.at === 'failed' ? [['file', describeFileFailure(store.file)]] : []),
          ...(store.quarantined > 0
            ? [['damage', `${formatEntries(store.quarantined)} with a broken seal, hidden from results`]]
            : []),
          ...(disagrees ? [['clock', clockLine]] : []),
          ...(store.rotation.at === 'running' ? [['rotation', `${store.rotation.done} of ${store.rotation.of} entries`]] : []),
        ]),
        ...remedy,
        ...(disagrees ? clockRemedy : []),
      ],
    );
    return keyExit(store.key);
  },
});

function describeMemory(kept: StoreStatus['kept'], config: Config, running: boolean): string {
  // The running program can have another database than the settings of this command.
  if (kept === 'database') return `${config.database ? memoryPlace(config) : 'a PostgreSQL database'}, sealed`;
  if (kept === 'file') return `${memoryPlace({ ...config, database: undefined })}, sealed`;
  return running ? 'in RAM only, lost when the program exits' : 'none yet';
}
