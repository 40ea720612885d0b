import { createHmac, randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import * as z from 'zod';
import { lazy, type SchemaOutput } from '../contract/schema.ts';
import { errorCodeOf, writePrivateFile } from '../core/file/files.ts';
import { OwnerClient } from './owner-client.ts';
import { readPrivateFile } from './private-file.ts';
import { connectProved } from './proved-connection.ts';

const ENDPOINT_FILE = 'endpoint.json';
const TOKEN_FILE = 'owner-token';

/** The content of `endpoint.json`, which the owner's other programs read to find this program (R-HTTP-03). */
const Endpoint = lazy(() =>
  z.object({
    // Only loopback addresses are accepted, because clients send their token to this URL.
    url: z.string().regex(/^http:\/\/(127\.0\.0\.1|\[::1\]):\d{1,5}$/),
    pid: z.int().min(1),
    /** Identifies this run of the program. */
    instance: z.string().min(1),
    /** Secret key of 32 bytes, in hexadecimal. The program that wrote this file uses the key to prove its identity. */
    proof_key: z.string().regex(/^[0-9a-f]{64}$/),
    started_at: z.string(),
  }),
);
type Endpoint = SchemaOutput<typeof Endpoint>;

export interface PublishedEndpoint extends Disposable {
  /** Returns the response to a challenge. The response proves that this program wrote `endpoint.json`. */
  readonly prove: (challenge: string) => string;
}

/** Writes `endpoint.json` and `owner-token` (R-AUTH-08). Disposing the result deletes both files. */
export function publishEndpoint(
  folder: string,
  { url, token, now }: { url: string; token: string; now: number },
): PublishedEndpoint {
  const endpoint: Endpoint = {
    url,
    pid: process.pid,
    instance: randomBytes(16).toString('hex'),
    proof_key: randomBytes(32).toString('hex'),
    started_at: new Date(now).toISOString(),
  };
  // The token is written first, so that a program that finds `endpoint.json` also finds the token.
  writePrivateFile(join(folder, TOKEN_FILE), `${token}\n`);
  writePrivateFile(join(folder, ENDPOINT_FILE), `${JSON.stringify(endpoint, null, 2)}\n`);
  const key = Buffer.from(endpoint.proof_key, 'hex');
  return {
    prove: (challenge) => createHmac('sha256', key).update(challenge).digest('hex'),
    [Symbol.dispose]() {
      // Do not delete the files if another instance of the program has replaced them.
      if (tryReadEndpoint(folder)?.instance !== endpoint.instance) return;
      rmSync(join(folder, ENDPOINT_FILE), { force: true });
      rmSync(join(folder, TOKEN_FILE), { force: true });
    },
  };
}

/** Like `readEndpoint`, but returns undefined instead of throwing if another user owns the file or can read it. */
function tryReadEndpoint(folder: string): Endpoint | undefined {
  try {
    return readEndpoint(folder);
  } catch {
    return undefined;
  }
}

/** Returns the pid in `endpoint.json`, if that file names this port and that process is running. */
export function publisherPid(folder: string, port: number): number | undefined {
  const endpoint = tryReadEndpoint(folder);
  return endpoint && Number(new URL(endpoint.url).port) === port && isProcessAlive(endpoint.pid) ? endpoint.pid : undefined;
}

interface ProgramEndpoint {
  readonly url: string;
  /** Opens a connection and verifies that the other side is the program that wrote `endpoint.json`. */
  readonly connect: () => Promise<Socket>;
}

/** Finds the running program that serves this data folder, for a caller that has its own token. */
export function findEndpoint(folder: string): ProgramEndpoint | undefined {
  const endpoint = tryReadEndpoint(folder);
  if (!endpoint || !isProcessAlive(endpoint.pid)) return undefined;
  const { url, proof_key } = endpoint;
  return { url, connect: connectProved(url, Buffer.from(proof_key, 'hex')) };
}

function readEndpoint(folder: string): Endpoint | undefined {
  const text = readPrivateFile(join(folder, ENDPOINT_FILE));
  if (text === undefined) return undefined;
  try {
    return Endpoint().safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/**
 * Finds the running program that serves this data folder, and connects as the owner. On every connection, the program is verified
 * before the owner's token is sent, so that another program on the same port cannot get the token (R-HTTP-11).
 */
export async function findOwnerClient(folder: string): Promise<OwnerClient | undefined> {
  const endpoint = readEndpoint(folder);
  if (!endpoint || !isProcessAlive(endpoint.pid)) return undefined;
  const token = readPrivateFile(join(folder, TOKEN_FILE))?.trim();
  if (token === undefined) return undefined;
  const { url, pid, proof_key } = endpoint;
  const connect = connectProved(url, Buffer.from(proof_key, 'hex'));
  try {
    (await connect()).destroy();
  } catch (error) {
    if (errorCodeOf(error) === 'ECONNREFUSED') return undefined;
    throw error;
  }
  return new OwnerClient({ url, pid, token, connect });
}

/** Whether a process with this pid is running. It can be another process than expected, because pids are reused. */
export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCodeOf(error) === 'EPERM';
  }
}
