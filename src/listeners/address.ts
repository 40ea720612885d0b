import { Failure } from '../contract/failure.ts';
import { DEFAULT_ADDRESS } from '../contract/limits.ts';

export interface ListenAddress {
  readonly host: '127.0.0.1' | '::1';
  readonly port: number;
}

const SHAPE = /^(?<host>127\.0\.0\.1|localhost|\[::1\]):(?<port>\d{1,5})$/;

/** Whoever could reach it from another machine could try tokens there: only loopback will do (R-HTTP-01). */
export function parseListenAddress(text: string): ListenAddress {
  const { host, port } = SHAPE.exec(text)?.groups ?? {};
  if (host !== undefined && Number(port) <= 65_535) {
    // What else a system may call localhost is not asked.
    return { host: host === '[::1]' ? '::1' : '127.0.0.1', port: Number(port) };
  }
  throw new Failure(
    'invalid_input',
    `HELMDECK_ADDR must be 127.0.0.1, localhost or [::1] with a port, such as ${DEFAULT_ADDRESS}: this memory listens to its own machine only; from another, come through a tunnel (ssh -L).`,
  );
}

export const formatListenAddress = ({ host, port }: ListenAddress): string =>
  host === '::1' ? `[::1]:${port}` : `${host}:${port}`;
