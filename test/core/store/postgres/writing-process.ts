import { environmentSource } from '../../../../src/core/crypto/keys/environment-source.ts';
// A process of its own that writes facts until it is killed. Prints each key after its fact and its note were stored.
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { systemClock } from '../../../../src/core/time/clock.ts';

const [port = '', schema = '', run = ''] = process.argv.slice(2);
const source = environmentSource(process.env);
const store = await PostgresStore.open({
  database: { connection: { host: '127.0.0.1', port: Number(port), user: 'owner', database: 'postgres' }, schema },
  clock: systemClock,
  sources: () => (source ? [source] : []),
});
await Promise.all(
  Array.from({ length: 8 }, async (_, writer) => {
    const subject = `subject ${writer % 3}`;
    const facts = store.space({ subject }, 'fact');
    for (let turn = 0; ; turn += 1) {
      const key = `${run} ${writer} ${turn}`;
      const author = { client: `writer ${writer}`, origin: 'test', token: 'token' };
      await facts.put({ key, value: `value of ${key}`, category: 'test', tags: [], author, lifetime: 86_400_000 });
      await store.recordActivity(subject, {
        key: `note ${key}`,
        value: '',
        category: 'test',
        tags: [],
        author,
        lifetime: 86_400_000,
      });
      process.stdout.write(`${key}\n`);
    }
  }),
);
