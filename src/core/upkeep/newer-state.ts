import { existsSync } from 'node:fs';
import { BrokenSeal, type KeyRing, openBytes } from '../crypto/cipher.ts';
import { findKeys } from '../crypto/find-keys.ts';
import { STORED_CLOCK, type KeyKeeper, type KeyTables } from '../crypto/key-keeper.ts';
import type { KeySource } from '../crypto/keys/key-source.ts';
import { wrapKey, RECOVERY_WRAPPED_KEY, RECOVERY_PUBLIC_KEY } from '../crypto/recovery-key.ts';
import { Connection } from '../store/connection.ts';
import { openUnmigrated } from '../store/database.ts';
import {
  CAPTURE_CHOICES,
  CREDENTIAL,
  OFFERED_PACKS,
  PAUSED_TOKEN,
  SIGNING_SECRET,
  TOKEN_RECORD,
  VAULT_PREFIX,
} from '../store/vault.ts';

/** Expiry of a revocation if the expiry of the token is unknown. */
const NEVER_EXPIRES = Number.MAX_SAFE_INTEGER;

export interface Tombstone {
  readonly at: number;
  readonly trusted: number;
  readonly hash: Buffer | null;
  readonly subject: string | null;
  readonly session: string | null;
  readonly kind: number | null;
  readonly category: string | null;
}

/**
 * State of the replaced memory that a restore must not undo, such as tombstones and revoked tokens. Reading `secrets` needs the
 * master key.
 */
export interface NewerState {
  /** Random id of the memory. The backups of a memory have the same id. */
  readonly memory: string | undefined;
  readonly tombstones: readonly Tombstone[];
  readonly revocations: readonly { readonly id: string; readonly expires_at: number }[];
  readonly segments: readonly { readonly id: Buffer; readonly segment: number }[];
  readonly names: ReadonlySet<string>;
  /** The secrets that could be decrypted. Empty if the key is not available. */
  readonly secrets: ReadonlyMap<string, Buffer>;
}

export const EMPTY_NEWER_STATE: NewerState = {
  memory: undefined,
  tombstones: [],
  revocations: [],
  segments: [],
  names: new Set(),
  secrets: new Map(),
};

/** Reads the state of the replaced memory. Undefined if the memory cannot be read. */
export async function readNewerState(
  file: string,
  keySources: (connection: Connection) => readonly KeySource[],
): Promise<NewerState | undefined> {
  if (!existsSync(file)) return EMPTY_NEWER_STATE;
  try {
    // The memory is replaced afterwards, so it is not migrated.
    const connection = new Connection(file, openUnmigrated(file));
    try {
      const [tombstones, revocations] = [connection.sql.tombstones.all(), connection.sql.revocations.all()];
      const tables = { tombstones: tombstones as Tombstone[], revocations: revocations as NewerState['revocations'] };
      return newerStateOf(connection, tables, await ringOf(connection, keySources(connection)));
    } finally {
      connection.close();
    }
  } catch {
    return undefined;
  }
}

/** Returns the state of a memory that can be read. Without its key, the secrets are missing. */
export function newerStateOf(
  records: KeyTables,
  { tombstones, revocations }: Pick<NewerState, 'tombstones' | 'revocations'>,
  ring: KeyRing | undefined,
): NewerState {
  const names = records.secretNames();
  return {
    memory: String(records.meta('memory')),
    tombstones,
    revocations,
    segments: records.keyRecords(),
    names: new Set(names),
    secrets: secretsIn(records, names, ring),
  };
}

export async function ringOf(
  connection: Pick<KeyTables, 'keyRecords'>,
  keySources: readonly KeySource[],
): Promise<KeyRing | undefined> {
  const records = connection.keyRecords();
  // Return no key, because without a key record `findKeys` would accept any key.
  if (records.length === 0) return undefined;
  const found = await findKeys(records, keySources);
  return found.at === 'ok' ? found.keys.ring : undefined;
}

function secretsIn(
  connection: Pick<KeyTables, 'meta'>,
  names: readonly string[],
  ring: KeyRing | undefined,
): Map<string, Buffer> {
  const secrets = new Map<string, Buffer>();
  for (const name of ring ? names : []) {
    const sealed = connection.meta(name);
    try {
      if (ring && Buffer.isBuffer(sealed)) secrets.set(name, openBytes(ring, ['secret', name], sealed));
    } catch (error) {
      if (!(error instanceof BrokenSeal)) throw error;
    }
  }
  return secrets;
}

/**
 * Writes the newer state into the restored backup. Returns the number of tokens that were revoked because their records cannot be
 * decrypted. Without the revocation, these tokens would be valid but not listed, because the restored memory has the secret that
 * signed them.
 */
export function applyNewerState(connection: Connection, keys: KeyKeeper, newer: NewerState): number {
  return connection.transaction(() => {
    for (const { id, expires_at } of newer.revocations) connection.sql.insertRevocation.run(id, expires_at);
    carrySegments(connection, keys, newer);
    const revoked = carryTokens(connection, keys, newer);
    const ofThisMemory = newer.memory === String(connection.meta('memory'));
    const has = (name: string): boolean => connection.meta(name) !== undefined;
    const carry = (name: string): void => {
      const secret = newer.secrets.get(name);
      if (secret) keys.saveSecret(name, secret);
    };
    // Do not replace the signing secret with the secret of another memory, because this would invalidate the restored tokens.
    if (ofThisMemory || !has(VAULT_PREFIX + SIGNING_SECRET)) carry(VAULT_PREFIX + SIGNING_SECRET);
    if (ofThisMemory) {
      carryCredentials(connection, keys, newer);
      carryChoices(keys, newer);
      carryRecoveryKey(connection, keys, newer);
    }
    carryClock(keys, newer);
    return revoked;
  });
}

/**
 * Marks the segments of the replaced memory as used. Each segment limits the use of one derived key, so a segment that was opened
 * after the backup must not be opened again.
 */
function carrySegments(connection: Connection, keys: KeyKeeper, newer: NewerState): void {
  for (const { id, segment } of keys.records()) {
    const reached = openedSegments(newer, id);
    if (reached > segment) connection.setSegment(id, reached);
  }
  keys.abandonSegment();
}

export const openedSegments = ({ segments }: NewerState, key: Buffer): number =>
  segments.find(({ id }) => id.equals(key))?.segment ?? 0;

function carryTokens(connection: Connection, keys: KeyKeeper, { names, secrets }: NewerState): number {
  const revocations = connection.sql.revocations.all() as NewerState['revocations'];
  const revoked = new Set(revocations.map(({ id }) => id));
  let unreadable = 0;
  for (const name of withPrefix(names, VAULT_PREFIX + TOKEN_RECORD)) {
    const id = name.slice((VAULT_PREFIX + TOKEN_RECORD).length);
    const record = secrets.get(name);
    if (revoked.has(id)) continue;
    if (record) keys.saveSecret(name, record);
    else if (connection.meta(name) === undefined) {
      connection.sql.insertRevocation.run(id, NEVER_EXPIRES);
      unreadable += 1;
    }
    // Keep the owner's last decision to pause or resume the token.
    const paused = VAULT_PREFIX + PAUSED_TOKEN + id;
    if (names.has(paused)) keys.saveSecret(paused, Buffer.from('paused'));
    else keys.deleteSecret(paused);
  }
  return unreadable;
}

/**
 * Copies the credentials of the replaced memory into the restored memory, so that a restore does not bring back deleted
 * credentials or replace newer ones.
 */
function carryCredentials(connection: Connection, keys: KeyKeeper, { names, secrets }: NewerState): void {
  const prefix = VAULT_PREFIX + CREDENTIAL;
  for (const name of withPrefix(new Set(connection.secretNames()), prefix)) if (!names.has(name)) keys.deleteSecret(name);
  for (const name of withPrefix(names, prefix)) {
    const secret = secrets.get(name);
    if (secret) keys.saveSecret(name, secret);
  }
}

/** Copies the owner's choices for each client: the packs that it is offered, and what it may propose. */
function carryChoices(keys: KeyKeeper, { names, secrets }: NewerState): void {
  for (const name of [OFFERED_PACKS, CAPTURE_CHOICES].map((one) => VAULT_PREFIX + one)) {
    const choices = secrets.get(name);
    if (choices) keys.saveSecret(name, choices);
    else if (!names.has(name)) keys.deleteSecret(name);
  }
}

/** Copies the newest recovery key's public half, so that an older recovery key stays invalid. */
function carryRecoveryKey(connection: Connection, keys: KeyKeeper, { secrets }: NewerState): void {
  const publicKey = secrets.get(RECOVERY_PUBLIC_KEY);
  // Do nothing during a rotation: the backup then has two wrapped keys, and both belong to the backup's own recovery key.
  if (!publicKey || keys.ring.retiring || keys.readSecret(RECOVERY_PUBLIC_KEY)?.equals(publicKey)) return;
  const master = keys.ring.current.export();
  keys.saveSecret(RECOVERY_PUBLIC_KEY, publicKey);
  connection.setMeta(RECOVERY_WRAPPED_KEY, wrapKey(master, publicKey));
  master.fill(0);
}

/**
 * Copies the later of the two stored times. Compared with the time stored in an old backup, the present would look like a jump
 * of the clock.
 */
function carryClock(keys: KeyKeeper, { secrets }: NewerState): void {
  const newer = secrets.get(STORED_CLOCK);
  const older = keys.readSecret(STORED_CLOCK);
  if (newer && (!older || newer.readDoubleBE() > older.readDoubleBE())) keys.saveSecret(STORED_CLOCK, newer);
}

const withPrefix = (names: ReadonlySet<string>, prefix: string): string[] => [...names].filter((name) => name.startsWith(prefix));
