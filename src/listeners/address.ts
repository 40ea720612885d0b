import { isIP } from 'node:net';
import { Failure } from '../contract/failure.ts';
import { DEFAULT_ADDRESS } from '../contract/names.ts';

export interface ListenAddress {
  /** An IP address, without brackets. */
  readonly host: string;
  readonly port: number;
}

const MAX_PORT = 65_535;

const PATTERN = /^(?<host>127\.0\.0\.1|localhost|\[::1\]):(?<port>\d{1,5})$/;

/**
 * Parses a listening address. Only loopback addresses are accepted, so that other machines cannot try to guess tokens
 * (R-HTTP-01).
 */
export function parseListenAddress(text: string): ListenAddress {
  const { host, port } = PATTERN.exec(text)?.groups ?? {};
  if (host !== undefined && Number(port) <= MAX_PORT) {
    // `localhost` is never resolved, because the hosts file could map it to another address.
    return { host: host === '[::1]' ? '::1' : '127.0.0.1', port: Number(port) };
  }
  throw new Failure(
    'invalid_config',
    `HELMDECK_ADDR must be 127.0.0.1, localhost or [::1] with a port, such as ${DEFAULT_ADDRESS}. It accepts connections only from this machine. To accept connections from other machines, set HELMDECK_SERVER_ADDR too.`,
  );
}

const SERVER_PATTERN = /^(?:(?<v4>[\d.]+)|\[(?<v6>[0-9a-f:.]+)\]):(?<port>\d{1,5})$/;

/** Parses the address on which other machines connect. Returns undefined unless it is an IP address with a port. */
export function parseServerAddress(text: string): ListenAddress | undefined {
  const { v4 = '', v6 = '', port } = SERVER_PATTERN.exec(text)?.groups ?? {};
  const isAddress = isIP(v4) === 4 || isIP(v6) === 6;
  return isAddress && Number(port) <= MAX_PORT ? { host: v4 || v6, port: Number(port) } : undefined;
}

export const formatListenAddress = ({ host, port }: ListenAddress): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
