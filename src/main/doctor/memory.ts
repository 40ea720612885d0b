import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { OperationOutput } from '../../contract/operations.ts';
import { environmentSource } from '../../core/crypto/keys/environment-source.ts';
import { fileSource } from '../../core/crypto/keys/file-source.ts';
import { MEMORY_FILE } from '../../core/store/database.ts';
import { formatCount } from '../cli/layout.ts';
import type { MemoryConnection } from '../cli/memory-connection.ts';
import { formatMinute } from '../cli/times.ts';
import type { Config, HostMachine } from '../config/config.ts';
import { clientFindings } from './clients.ts';
import { bad, type Finding, ok, refusal, warn } from './finding.ts';
import { lockHolder } from './lock-holder.ts';

type Status = OperationOutput<'status'>['store'];

interface Asked {
  readonly config: Config;
  readonly environment: HostMachine['environment'];
  readonly running: boolean;
  readonly memory: () => Promise<MemoryConnection>;
  readonly now: number;
}

const MONTH_MS = 30 * 86_400_000;

/** How the memory stands, its key, and what would bring it back. None is made to find out. */
export async function memoryFindings(asked: Asked): Promise<Finding[]> {
  const { config, running, memory } = asked;
  if (!running && !existsSync(join(config.folder, MEMORY_FILE))) return beforeTheFirst(asked);
  try {
    const at = await memory();
    const { store, facts } = await at.call('status', {});
    return [
      keyFinding(store),
      ...statusFindings(store),
      ...(store.kept === 'file' && store.key.at === 'ok' ? await entryFindings(at) : []),
      ...(store.kept === 'file' ? await waysBack(at, asked.now, facts) : []),
      ...(await clientFindings(at)),
    ];
  } catch (error) {
    return [refusal('memory', error), ...holderFindings(error, config.folder)];
  }
}

async function beforeTheFirst({ config: { folder }, environment }: Asked): Promise<Finding[]> {
  try {
    const named = environmentSource(environment);
    const source = named ?? fileSource(folder);
    if ((await source.read('current')).at === 'found') {
      return [ok('memory', `There is none yet; the next start makes it, with the key in ${source.name}.`)];
    }
  } catch (error) {
    return [refusal('key', error)];
  }
  return [
    warn(
      'memory',
      'There is none yet, and no key for it was found outside of the keychain.',
      'Make one with: helmdeck-memory key init (or key init --file where there is no keychain).',
    ),
  ];
}

function keyFinding({ key }: Status): Finding {
  if (key.at === 'ok') return ok('key', `It is in ${key.source}.`);
  if (key.at === 'ephemeral') return bad('key', 'There is none, so nothing is kept: the memory is in RAM only.', key.remedy);
  return bad('key', `It is ${key.at}${'why' in key ? `: ${key.why}` : ''}.`, key.remedy);
}

function statusFindings({ file, clock, rotation }: Status): Finding[] {
  return [
    file.at === 'open' ? ok('file', 'It is open.') : bad('file', `It cannot be used: ${file.why}.`, file.remedy),
    ...clockFindings(clock),
    ...(rotation.at === 'running'
      ? [warn('key', `It is being rotated: ${rotation.done} of ${rotation.of}.`, 'Keep the program running until it is done.')]
      : []),
  ];
}

/** Without the key there is nothing to compare the clock with, and the finding about the key says what to do. */
function clockFindings(clock: Status['clock']): Finding[] {
  if (clock.at === 'unchecked') return [];
  return clock.at === 'ok' ? [ok('clock', 'It is not in doubt.')] : [warn('clock', `${sentence(clock.why)}.`, clock.remedy)];
}

const sentence = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

async function entryFindings(memory: MemoryConnection): Promise<Finding[]> {
  const { entries, broken, structure } = await memory.call('verify', {});
  if (broken === 0 && structure.length === 0)
    return [ok('entries', `All ${formatCount(entries, 'entry', 'entries')} are whole.`)];
  const restore = 'Restore a backup with: helmdeck-memory restore <file>, after helmdeck-memory export of what is there.';
  return [
    ...(broken > 0
      ? [bad('entries', `${formatCount(broken, 'entry', 'entries')} with a broken seal are left out of every answer.`, restore)]
      : []),
    ...(structure.length > 0 ? [bad('file', `Its structure is damaged: ${structure.slice(0, 3).join(', ')}.`, restore)] : []),
  ];
}

async function waysBack(memory: MemoryConnection, now: number, facts: number): Promise<Finding[]> {
  const { backups, recovery_key: recoverable } = await memory.call('backups', {});
  return [backupFinding(backups[0], now, facts), recoverable ? ok('recovery', 'A recovery key was made.') : UNRECOVERABLE];
}

function backupFinding(newest: { at: string } | undefined, now: number, facts: number): Finding {
  const make = 'Make one with: helmdeck-memory backup';
  if (!newest) return facts > 0 ? warn('backup', 'There is none.', make) : ok('backup', 'There is none, and nothing to lose.');
  const says = `The newest is of ${formatMinute(newest.at)}.`;
  return Date.parse(newest.at) < now - MONTH_MS ? warn('backup', says, make) : ok('backup', says);
}

const UNRECOVERABLE = warn(
  'recovery',
  'No recovery key was made: if the key is lost, so is the memory.',
  'Make one with: helmdeck-memory key recovery, and write it down.',
);

function holderFindings(error: unknown, folder: string): Finding[] {
  const held = error instanceof Error && error.message.includes('holds this data folder');
  const holder = held ? lockHolder(folder) : undefined;
  return holder === undefined ? [] : [bad('lock', `The folder is held by ${holder}.`, 'Wait until it has ended, or end it.')];
}
