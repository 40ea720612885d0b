import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { errorCodeOf } from '../../core/file/files.ts';
import { formatListenAddress, type ListenAddress, parseListenAddress } from '../../listeners/address.ts';
import { findOwnerClient, publisherPid } from '../../listeners/endpoint.ts';
import { describePortHolder } from '../../listeners/port.ts';
import type { Config } from '../config/config.ts';
import { describeUnreachable, readUnreachable } from '../roots/unreachable.ts';
import { bad, failed, type Finding, ok, warn } from './finding.ts';

/** Checks whether the program is running. If it is not, checks whether its port is free. */
export async function listenerFindings({ folder, address }: Config): Promise<{ running: boolean; findings: Finding[] }> {
  try {
    using program = await findOwnerClient(folder);
    if (program)
      return {
        running: true,
        findings: [ok('program', `Helmdeck Memory is running at ${program.url} (process ${program.pid}).`)],
      };
  } catch (error) {
    return { running: false, findings: [failed('program', error), ...(await portFindings(folder, address))] };
  }
  const unreachable = readUnreachable(folder);
  if (unreachable) {
    return { running: true, findings: [{ check: 'program', state: 'warn', says: describeUnreachable(unreachable) }] };
  }
  const finding = existsSync(join(folder, 'endpoint.json'))
    ? warn(
        'program',
        'Helmdeck Memory is not running. It was killed, and left endpoint.json behind.',
        'You can ignore this file: the next start replaces it.',
      )
    : ok('program', 'Helmdeck Memory is not running. Start it with: helmdeck-memory serve');
  return { running: false, findings: [finding, ...(await portFindings(folder, address))] };
}

async function portFindings(folder: string, setting: string): Promise<Finding[]> {
  try {
    const address = parseListenAddress(setting);
    const shown = formatListenAddress(address);
    const errorCode = await tryListen(address);
    if (errorCode === undefined) return [ok('port', `${shown} is free.`)];
    if (errorCode !== 'EADDRINUSE')
      return [bad('port', `You are not allowed to listen on ${shown}.`, 'Set HELMDECK_ADDR to another port.')];
    const holder = describePortHolder(address, publisherPid(folder, address.port));
    return [bad('port', `${shown} is in use by ${holder}.`, 'Stop that program, or set HELMDECK_ADDR to another port.')];
  } catch (error) {
    return [failed('port', error)];
  }
}

/** Checks whether the address is free, by listening for a moment. Returns the error code if listening fails. */
async function tryListen(address: ListenAddress): Promise<string | undefined> {
  const server = createServer((socket) => socket.destroy());
  try {
    server.listen({ ...address, exclusive: true });
    await once(server, 'listening');
    return undefined;
  } catch (error) {
    return errorCodeOf(error) ?? 'unknown';
  } finally {
    server.close();
  }
}
