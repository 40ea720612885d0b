import { existsSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { ClientRow } from '../../contract/client.ts';
import type { OperationOutput } from '../../contract/operations.ts';
import { DAY_MS } from '../../contract/units.ts';
import { environmentSource } from '../../core/crypto/keys/environment-source.ts';
import { fileSource } from '../../core/crypto/keys/file-source.ts';
import { formatEntries } from '../cli/layout.ts';
import { isFilePresent, isFolderInUse, isMemoryMissing, type MemoryConnection } from '../cli/memory-connection.ts';
import { formatMinute } from '../cli/times.ts';
import type { Config, HostMachine } from '../config/config.ts';
import { bad, failed, type Finding, ok, warn } from './finding.ts';

type Status = OperationOutput<'status'>['store'];

interface MemoryCheck {
  readonly config: Config;
  readonly environment: HostMachine['environment'];
  readonly machine: HostMachine;
  readonly running: boolean;
  readonly memory: () => Promise<MemoryConnection>;
  readonly now: number;
}

const MONTH_MS = 30 * DAY_MS;

/** Checks the memory, its key, its backups and the connected agents. Does not create a memory. */
export async function memoryFindings(examined: MemoryCheck): Promise<Finding[]> {
  const { config, environment, running, memory, now } = examined;
  try {
    const exists = config.database ? !(await isMemoryMissing(config, environment)) : await isFilePresent(config.folder);
    if (!running && !exists) return await newMemoryFindings(examined);
    const connection = await memory();
    const { store, facts, meaning } = await connection.call('status', {});
    return [
      keyFinding(store),
      ...statusFindings(store),
      ...(store.kept !== 'memory' && store.key.at === 'ok' ? await entryFindings(connection) : []),
      ...(store.kept === 'memory' ? [] : await recoveryFindings(connection, { now, facts, kept: store.kept })),
      ...meaningFindings(meaning),
      ...(await clientFindings(connection)),
    ];
  } catch (error) {
    return [failed('memory', error), ...holderFindings(error, config.folder)];
  }
}

async function newMemoryFindings({ config: { folder }, environment, machine, now }: MemoryCheck): Promise<Finding[]> {
  const remote = await remoteClientFindings({ ...machine, environment }, folder, now);
  if (remote.length > 0) return [ok('memory', 'There is no memory on this machine, and agents use a server.'), ...remote];
  try {
    const source = environmentSource(environment) ?? fileSource(folder);
    if ((await source.read('current')).at === 'found') {
      return [ok('memory', `There is no memory yet. The next start creates it with the key in ${source.name}.`)];
    }
  } catch (error) {
    return [failed('key', error)];
  }
  return [
    warn(
      'memory',
      'There is no memory yet, and no key for a memory was found outside the OS keychain.',
      'Create a key with: helmdeck-memory key init (without an OS keychain: key init --file)',
    ),
  ];
}

function keyFinding({ key }: Status): Finding {
  if (key.at === 'ok') return ok('key', `The key is in ${key.source}.`);
  if (key.at === 'ephemeral') return bad('key', 'There is no key, so nothing is saved: the memory is in RAM only.', key.remedy);
  return bad('key', `The key is ${key.at}${'why' in key ? `: ${key.why}` : ''}.`, key.remedy);
}

function statusFindings({ kept, file, clock, rotation }: Status): Finding[] {
  return [
    file.at === 'open'
      ? ok('file', kept === 'database' ? 'The database is open.' : 'The memory file is open.')
      : bad('file', `The ${kept === 'database' ? 'database' : 'memory file'} is unusable: ${file.why}.`, file.remedy),
    ...clockFindings(clock),
    ...(rotation.at === 'running'
      ? [
          warn(
            'key',
            `The key is being rotated: ${rotation.done} of ${rotation.of} entries.`,
            'Keep Helmdeck Memory running until the rotation is done.',
          ),
        ]
      : []),
  ];
}

/** Reports nothing if the clock is unchecked: the key is then unavailable, and the finding `key` says what to do. */
function clockFindings(clock: Status['clock']): Finding[] {
  if (clock.at === 'unchecked') return [];
  if (clock.at === 'ok') return [ok('clock', 'The system clock agrees with the memory.')];
  return [warn('clock', `${clock.why.slice(0, 1).toUpperCase()}${clock.why.slice(1)}.`, clock.remedy)];
}

/** Reports nothing while search by meaning is off. */
function meaningFindings(meaning: OperationOutput<'status'>['meaning']): Finding[] {
  if (meaning.at === 'off') return [];
  if (meaning.at === 'failed') return [warn('meaning', `Search works by words only. ${meaning.why}`, meaning.remedy)];
  const says = meaning.at === 'ready' ? `uses the model ${meaning.model}` : 'waits for Ollama';
  return [ok('meaning', `Search by meaning ${says}.`)];
}

async function entryFindings(memory: MemoryConnection): Promise<Finding[]> {
  const { entries, broken, structure } = await memory.call('verify', {});
  if (broken === 0 && structure.length === 0) return [ok('entries', `${formatEntries(entries)} verified, no damage found.`)];
  const remedy = 'Export what is left with helmdeck-memory export, then restore a backup with: helmdeck-memory restore <file>';
  return [
    ...(broken > 0
      ? [
          bad(
            'entries',
            `The seal of ${formatEntries(broken)} is broken. Results do not show entries with a broken seal.`,
            remedy,
          ),
        ]
      : []),
    ...(structure.length > 0
      ? [bad('file', `The structure of the memory is damaged: ${structure.slice(0, 3).join(', ')}.`, remedy)]
      : []),
  ];
}

async function recoveryFindings(
  memory: MemoryConnection,
  { now, facts, kept }: { now: number; facts: number; kept: Status['kept'] },
): Promise<Finding[]> {
  const { backups, recovery_key: hasRecoveryKey } = await memory.call('backups', {});
  return [
    // Databases are backed up with the tools of PostgreSQL too, which this program cannot see.
    ...(kept === 'file' || backups.length > 0 ? [backupFinding(backups[0], now, facts)] : []),
    hasRecoveryKey
      ? ok('recovery', 'There is a recovery key.')
      : warn(
          'recovery',
          'There is no recovery key. If you lose the key, you lose the memory.',
          'Create a recovery key and write it down: helmdeck-memory key recovery',
        ),
  ];
}

function backupFinding(newest: { at: string } | undefined, now: number, facts: number): Finding {
  const remedy = 'Create a backup with: helmdeck-memory backup';
  if (!newest) return facts > 0 ? warn('backup', 'There is no backup.', remedy) : ok('backup', 'There are no facts to back up.');
  const says = `The newest backup is from ${formatMinute(newest.at)}.`;
  return Date.parse(newest.at) < now - MONTH_MS ? warn('backup', says, remedy) : ok('backup', says);
}

/** Checks the agents that use a server on another machine. */
async function remoteClientFindings(machine: HostMachine, folder: string, now: number): Promise<Finding[]> {
  if (!existsSync(join(folder, 'clients'))) return [];
  const { connectionsWithoutMemory } = await import('../connect/without-memory.ts');
  const connections = connectionsWithoutMemory(machine, folder, () => now);
  const { clients } = await connections.list();
  const remote = clients.filter(({ server }) => server !== undefined);
  const findings = await Promise.all(
    remote.map(async (row) => {
      if (row.state !== 'connected') return [clientFinding(row)];
      const { works, why = '' } = await connections.verify({ client: row.id });
      return works
        ? [clientFinding(row), ...hookFindings(row)]
        : [warn('agent', `${row.name} is connected to ${row.server}. ${why}`, 'Ask the admin of the server.')];
    }),
  );
  return findings.flat();
}

/** Reports only the agents that the owner has connected. */
async function clientFindings(memory: MemoryConnection): Promise<Finding[]> {
  const { clients } = await memory.call('clients', {});
  return clients.filter(({ subject }) => subject !== undefined).flatMap((row) => [clientFinding(row), ...hookFindings(row)]);
}

function clientFinding({ id, name, state, why, token, server }: ClientRow): Finding {
  const target = server === undefined ? id : `${id} --server ${server}`;
  const remedy = `Connect ${name} again with: helmdeck-memory connect ${target}`;
  if (state === 'connected' && server !== undefined) return ok('agent', `${name} is connected to ${server}.`);
  if (state === 'connected' && token?.paused === true)
    return warn('agent', `${name} is paused.`, `Resume ${name} with: helmdeck-memory token resume ${token.id}`);
  if (state === 'connected') {
    const used = token?.last_used_at;
    return ok('agent', `${name} is connected, ${used === undefined ? 'never used' : `last used ${formatMinute(used)}`}.`);
  }
  if (state === 'no_token') return warn('agent', `The token of ${name} was revoked or has expired.`, remedy);
  if (state === 'differs') return warn('agent', `The entry for Helmdeck Memory in ${name} was changed.`, remedy);
  if (state === 'broken') return warn('agent', `The connection of ${name} does not work.`, why ?? remedy);
  return warn('agent', `${name} is not connected, because it removed its entry for Helmdeck Memory.`, remedy);
}

/** Reports hooks that cannot speak. */
function hookFindings({ id, name, state, hooks }: ClientRow): Finding[] {
  if (state !== 'connected' || !hooks) return [];
  if (hooks.state === 'waits_for_review')
    return [
      warn(
        'agent',
        `${name} does not run the hooks of Helmdeck Memory yet, because you have not reviewed them.`,
        `Start ${name} and trust the hooks, or connect it again with: helmdeck-memory connect ${id} --trust-hooks`,
      ),
    ];
  if (hooks.state !== 'differs') return [];
  return [
    warn(
      'agent',
      `The hooks of ${name} do not work. ${hooks.why ?? ''}`,
      `Connect ${name} again with: helmdeck-memory connect ${id}`,
    ),
  ];
}

function holderFindings(error: unknown, folder: string): Finding[] {
  const holder = isFolderInUse(error) ? lockHolder(folder) : undefined;
  if (holder === undefined) return [];
  return [bad('lock', `The data folder is in use by ${holder}.`, 'Wait until that process exits, or stop it.')];
}

/** Names the process that has locked the data folder. Returns undefined if the folder is not locked, or not on Linux. */
function lockHolder(folder: string): string | undefined {
  try {
    const { ino } = statSync(join(folder, 'lock.db'));
    // Format of a row: `1: POSIX ADVISORY WRITE <pid> 08:01:<inode> 1073741826 1073742335`
    const rows = readFileSync('/proc/locks', 'latin1')
      .split('\n')
      .map((row) => row.trim().split(/\s+/));
    const pid = rows.find((columns) => columns[3] === 'WRITE' && columns[5]?.endsWith(`:${ino}`))?.[4];
    return pid !== undefined && /^[1-9]\d*$/.test(pid) ? `${processName(pid)} (process ${pid})` : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the name of the executable. Does not return the command line, because it can contain a secret. */
function processName(pid: string): string {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`)).replace(/[^ -~]/g, '') || 'a program';
  } catch {
    return 'a program';
  }
}
