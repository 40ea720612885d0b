import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { errorCodeOf } from '../../core/file/files.ts';
import { formatListenAddress, type ListenAddress, parseListenAddress } from '../../listeners/address.ts';
import { findOwnerClient, publisherPid } from '../../listeners/endpoint.ts';
import { describePortHolder } from '../../listeners/port.ts';
import { ServerCertificate } from '../../listeners/team/certificate.ts';
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

/** Checks the certificate of the server for other machines. Returns nothing if there is no such server. */
export function teamFindings({ team }: Config, now: number): Finding[] {
  if (!team) return [];
  const reach = `Other machines can connect at ${formatListenAddress(team.address)}`;
  if (!team.certificate) return [ok('server', `${reach}, through the proxy at ${team.proxies.join(', ')}.`)];
  try {
    const days = Math.floor((new ServerCertificate(team.certificate, now).expires - now) / DAY_MS);
    const says = `${reach}. The certificate is valid for ${days} more days.`;
    if (days >= RENEWAL_DAYS) return [ok('server', says)];
    return [warn('server', says, 'Renew the certificate. A running server then uses the new one without a restart.')];
  } catch (error) {
    return [failed('server', error)];
  }
}

const DAY_MS = 86_400_000;
/** Renewal programs renew a certificate earlier than this before it expires. */
const RENEWAL_DAYS = 14;

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
