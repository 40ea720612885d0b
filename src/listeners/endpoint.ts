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

/** The content of `endpoint.json`, which tells the owner's other programs how to connect (R-HTTP-03). */
const Endpoint = lazy(() =>
  z.object({
    // Clients send their token there, so only loopback is accepted.
    url: z.string().regex(/^http:\/\/(127\.0\.0\.1|\[::1\]):\d{1,5}$/),
    pid: z.int().min(1),
    /** Identifies this run of the program. */
    instance: z.string().min(1),
    /** 32 bytes in hexadecimal. Only the program that wrote this file knows them. */
    proof_key: z.string().regex(/^[0-9a-f]{64}$/),
    started_at: z.string(),
  }),
);
type Endpoint = SchemaOutput<typeof Endpoint>;

export interface PublishedEndpoint extends Disposable {
  /** Answers a challenge, as proof that this program wrote `endpoint.json`. */
  readonly prove: (challenge: string) => string;
}

/** Writes `endpoint.json` and the owner's token (R-AUTH-08). Disposing the result deletes both. */
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
  // The token comes first, so that a reader of `endpoint.json` always finds it.
  writePrivateFile(join(folder, TOKEN_FILE), `${token}\n`);
  writePrivateFile(join(folder, ENDPOINT_FILE), `${JSON.stringify(endpoint, null, 2)}\n`);
  const key = Buffer.from(endpoint.proof_key, 'hex');
  return {
    prove: (challenge) => createHmac('sha256', key).update(challenge).digest('hex'),
    [Symbol.dispose]() {
      // Another program may have replaced the files since.
      if (tryReadEndpoint(folder)?.instance !== endpoint.instance) return;
      rmSync(join(folder, ENDPOINT_FILE), { force: true });
      rmSync(join(folder, TOKEN_FILE), { force: true });
    },
  };
}

/** Returns undefined instead of throwing if the file is not private. */
function tryReadEndpoint(folder: string): Endpoint | undefined {
  try {
    return readEndpoint(folder);
  } catch {
    return undefined;
  }
}

/** The running process that `endpoint.json` names for this port. */
export function publisherPid(folder: string, port: number): number | undefined {
  const endpoint = tryReadEndpoint(folder);
  return endpoint && Number(new URL(endpoint.url).port) === port && isProcessAlive(endpoint.pid) ? endpoint.pid : undefined;
}

interface ProgramEndpoint {
  readonly url: string;
  /** Opens a connection to the verified program. */
  readonly connect: () => Promise<Socket>;
}

/** Finds the running program for this data folder. The caller provides a token. */
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
 * Finds the program that serves this data folder. Every connection verifies the program before it carries the token, so another
 * program on the same port cannot get it (R-HTTP-11).
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

/** The operating system may have reused the pid, so this proves nothing about the program. */
export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCodeOf(error) === 'EPERM';
  }
}
