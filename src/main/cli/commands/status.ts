import { join } from 'node:path';
import { describeFileFailure } from '../../../contract/status.ts';
import { describeUnreachable, readUnreachable } from '../../unreachable.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { columns, formatCount, escapeControls } from '../layout.ts';
import { clockLines } from './clock.ts';
import { keyExit, keyLines } from './key.ts';

export const status = command({
  name: 'status',
  says: 'Says whether the program runs, what is kept where, and how the key stands.',
  more: ['The exit code is 4 while the key is not at hand.'],
  async run(_typed, desk) {
    const { folder, packs: listed } = desk.config;
    const memory = await desk.memory().catch((error: unknown) => {
      const unreachable = readUnreachable(folder);
      if (unreachable) return unreachable;
      throw error;
    });
    if ('at' in memory) {
      await desk.printResult({ folder, program: memory }, () => [
        ...columns([
          ['program', `running (process ${memory.pid}), ${memory.at === 'paused' ? 'paused' : 'not reachable'}`],
          ['memory', `${join(folder, 'memory.db')}, in use by it`],
        ]),
        describeUnreachable(memory),
      ]);
      return exits.done.code;
    }
    const { store, facts, embeddings } = await memory.call('status', {});
    // To say so takes a process for each, where the program does not run.
    const { packs = [], skipped = [] } = listed.length === 0 ? {} : await memory.call('packs', {});
    const own = packs.filter((pack) => pack.own).map(({ name }) => name);
    const [key = '', ...remedy] = keyLines(store.key);
    const disagrees = store.clock.at === 'ahead' || store.clock.at === 'behind';
    const [clockLine = '', ...clockRemedy] = clockLines(store.clock);
    await desk.printResult({ store, facts, embeddings, folder, program: memory.program ?? null, packs: own, skipped }, () => [
      ...columns([
        ['program', memory.program ? `running at ${memory.program.url} (process ${memory.program.pid})` : 'not running'],
        ['memory', store.kept === 'file' ? `${join(folder, 'memory.db')}, sealed` : 'in RAM only, gone with the program'],
        ['key', key],
        ['facts', String(facts)],
        ...(own.length > 0 ? [['packs', own.join(', ')]] : []),
        ...(embeddings.at === 'off'
          ? []
          : [
              [
                'embeddings',
                embeddings.at === 'failed' ? `${embeddings.why} ${embeddings.remedy}` : embeddings.at.replace('_', ' '),
              ],
            ]),
        ...skipped.map(({ name, why }) => ['packs', escapeControls(`${name} is skipped: ${why}`)]),
        ...(store.file.at === 'failed' ? [['file', describeFileFailure(store.file)]] : []),
        ...(store.quarantined > 0
          ? [['damage', `${formatCount(store.quarantined, 'entry', 'entries')} with a broken seal are left out`]]
          : []),
        ...(disagrees ? [['clock', clockLine]] : []),
        ...(store.rotation.at === 'running' ? [['rotation', `${store.rotation.done} of ${store.rotation.of} entries`]] : []),
      ]),
      ...remedy,
      ...(disagrees ? clockRemedy : []),
    ]);
    return keyExit(store.key);
  },
});
