import { rmSync } from 'node:fs';
import { Failure } from '../../../contract/failure.ts';
import type { KeyKeeper } from '../../crypto/key-keeper.ts';
import { copyMemory, type CopyResult } from '../../upkeep/copy-memory.ts';
import { FileCopy } from '../../upkeep/file-copy.ts';
import { integrityErrors, verifyMemory } from '../../upkeep/verification.ts';
import { Connection } from '../connection.ts';
import { openDatabase } from '../database.ts';
import { SealedRows } from '../sealed-rows.ts';
import type { VerificationReport } from '../store.ts';
import type { Database } from './database.ts';
import { ServerCopySource } from './server-copy.ts';

/** Writes the memory as it is now to a new file, with the same sealed bytes. Compares every row, and verifies the closed file. */
export async function copyToFile(database: Database, keys: KeyKeeper, file: string): Promise<VerificationReport> {
  // Reserves the name only.
  rmSync(file, { force: true });
  const connection = new Connection(file, openDatabase(file));
  try {
    const target = new FileCopy(connection, keys);
    const result = await database.snapshot(async (run): Promise<CopyResult> => {
      const source = new ServerCopySource(run, keys.heldKeys?.ring);
      await copyMemory(source, target);
      return copyMemory(source, target);
    });
    if (result.changes > 0) throw new Failure('internal', 'The backup differs from the memory, so it was deleted; try again.');
    connection.truncateLog();
  } finally {
    connection.close();
  }
  return await verifyFile(file, keys);
}

/** Reads the file again on a connection of its own. Without the key, only the structure can be verified. */
async function verifyFile(file: string, keys: KeyKeeper): Promise<VerificationReport> {
  const connection = new Connection(file, openDatabase(file));
  try {
    if (keys.heldKeys) return await verifyMemory(connection, new SealedRows(connection, keys), keys);
    return { entries: 0, broken: 0, structure: integrityErrors(connection) };
  } finally {
    connection.close();
  }
}
