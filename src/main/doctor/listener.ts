import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type ListenAddress, parseListenAddress, formatListenAddress } from '../../listeners/address.ts';
import { findOwnerClient, publisherPid } from '../../listeners/endpoint.ts';
import { describePortHolder } from '../../listeners/port.ts';
import type { Config } from '../config/config.ts';
import { readUnreachable } from '../roots/unreachable.ts';
import { bad, type Finding, ok, refusal, warn } from './finding.ts';

/** Whether the program runs, and if not, whether it could listen. */
export async function listenerFindings({ folder, address }: Config): Promise<{ running: boolean; findings: Finding[] }> {
  try {
    using program = await findOwnerClient(folder);
    if (program) return { running: true, findings: [ok('program', `It runs at ${program.url} (process ${program.pid}).`)] };
  } catch (error) {
    return { running: false, findings: [refusal('program', error), ...(await portFindings(folder, address))] };
  }
  const unreachable = readUnreachable(folder);
  if (unreachable) {
    const { pid, at, why } = unreachable;
    const says = at === 'paused' ? 'paused' : `not reachable${why === undefined ? '' : `: ${why}`}`;
    const finding = warn(
      'program',
      `It runs (process ${pid}) and is ${says}`.replace(/\.?$/, '.'),
      'Resume it in its window or its tray menu, or quit it.',
    );
    return { running: true, findings: [finding] };
  }
  const left = existsSync(join(folder, 'endpoint.json'))
    ? warn('program', 'It does not run; endpoint.json was left by one that was killed.', 'The next start replaces it.')
    : ok('program', 'It does not run; start it with: helmdeck-memory serve.');
  return { running: false, findings: [left, ...(await portFindings(folder, address))] };
}

async function portFindings(folder: string, asked: string): Promise<Finding[]> {
  try {
    const address = parseListenAddress(asked);
    const where = formatListenAddress(address);
    const trouble = await whyTaken(address);
    if (trouble === undefined) return [ok('port', `${where} is free.`)];
    if (trouble !== 'EADDRINUSE')
      return [bad('port', `This user may not listen on ${where}.`, 'Set HELMDECK_ADDR to another port.')];
    const holder = describePortHolder(address, publisherPid(folder, address.port));
    return [bad('port', `${where} is taken by ${holder}.`, 'End it, or set HELMDECK_ADDR to another port.')];
  } catch (error) {
    return [refusal('port', error)];
  }
}

/** Listens there for a moment; that alone is sure. */
async function whyTaken(address: ListenAddress): Promise<string | undefined> {
  const server = createServer((socket) => socket.destroy());
  try {
    server.listen({ ...address, exclusive: true });
    await once(server, 'listening');
    return undefined;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  } finally {
    server.close();
  }
}
