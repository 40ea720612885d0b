import { Failure } from '../../../contract/failure.ts';
import type { KeySource, KeySources } from '../../crypto/keys/key-source.ts';
import type { Clock } from '../../time/clock.ts';
import { recoverInto } from '../../upkeep/recovered-keys.ts';
import { BatchSecrets } from './batch-secrets.ts';
import { EVERYTHING } from './change-feed.ts';
import { Database, type DatabaseOptions } from './database.ts';
import { Mirror } from './mirror.ts';
import { hasMemory } from './server-transaction.ts';
import { UndoLog } from './undo-log.ts';

/**
 * Makes a source keep another key than the one that is stored. The key file of a data folder can open a memory in a file beside it, which
 * would be lost with its key.
 */
const keepOtherKeys = (source: KeySource): KeySource => {
  const { save } = source;
  if (!source.isShared || !save) return source;
  return {
    ...source,
    async save(slot, key) {
      const present = await source.read(slot);
      if (present.at === 'absent' || (present.at === 'found' && present.key.equals(key))) return save(slot, key);
      throw new Failure(
        'key_unavailable',
        `The recovered key was not stored, because ${source.name} contains another key, which can belong to another memory. Move that file to another place, and try again.`,
      );
    },
  };
};

interface RecoverOptions {
  readonly database: DatabaseOptions;
  readonly sources: KeySources;
  readonly clock: Clock;
  readonly recoveryKey: string;
}

/** Restores the lost master key of a memory in PostgreSQL: decrypts it with the recovery key and stores it in a key source. */
export async function recoverServerKey({ database: options, sources, clock, recoveryKey }: RecoverOptions): Promise<void> {
  const database = new Database(options);
  try {
    const read = database.read.bind(database);
    if (!(await hasMemory(database)))
      throw new Failure('not_found', 'There is no memory in this database; check HELMDECK_DATABASE_URL.');
    const mirror = new Mirror();
    await mirror.read(read, EVERYTHING);
    const records = new BatchSecrets(mirror, new UndoLog(), () => undefined);
    const keySources = sources(String(records.meta('memory'))).map(keepOtherKeys);
    await recoverInto(keySources, { records, clock, recoveryKey });
  } finally {
    await database.close();
  }
}
