import { Failure } from '../contract/failure.ts';
import { DEFAULT_ADDRESS } from '../contract/names.ts';

export interface ListenAddress {
  readonly host: '127.0.0.1' | '::1';
  readonly port: number;
}

const PATTERN = /^(?<host>127\.0\.0\.1|localhost|\[::1\]):(?<port>\d{1,5})$/;

/**
 * Parses a listening address. Only loopback addresses are accepted, so that other machines cannot try to guess tokens
 * (R-HTTP-01).
 */
export function parseListenAddress(text: string): ListenAddress {
  const { host, port } = PATTERN.exec(text)?.groups ?? {};
  if (host !== undefined && Number(port) <= 65_535) {
    // `localhost` is never resolved, because the hosts file could map it to another address.
    return { host: host === '[::1]' ? '::1' : '127.0.0.1', port: Number(port) };
  }
  throw new Failure(
    'invalid_config',
    `HELMDECK_ADDR must be 127.0.0.1, localhost or [::1] with a port, such as ${DEFAULT_ADDRESS}. Helmdeck Memory accepts connections only from this machine. To connect from another machine, use a tunnel (ssh -L).`,
  );
}

export const formatListenAddress = ({ host, port }: ListenAddress): string =>
  host === '::1' ? `[::1]:${port}` : `${host}:${port}`;
