// A process of its own that moves a memory, until it is done or killed. Writes a line at its start and for each report of progress.
import { environmentSource } from '../../../../src/core/crypto/keys/environment-source.ts';
import { systemClock } from '../../../../src/core/time/clock.ts';
import { moveToFile, moveToServer } from '../../../../src/core/upkeep/move.ts';

const [target = '', folder = '', port = '', schema = ''] = process.argv.slice(2);
const source = environmentSource(process.env);
process.stdout.write('started\n');
await (target === 'file' ? moveToFile : moveToServer)({
  folder,
  database: { connection: { host: '127.0.0.1', port: Number(port), user: 'owner', database: 'postgres' }, schema },
  places: { file: `${folder}/memory.db`, server: `the schema ${schema}` },
  clock: systemClock,
  sources: () => (source ? [source] : []),
  progress: (rows) => void process.stdout.write(`${rows}\n`),
});
