import { createHmac, randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import * as z from 'zod';
import { lazy, type SchemaOutput } from '../contract/lazy.ts';
import { errorCodeOf, writePrivateFile } from '../core/file/files.ts';
import { OwnerClient } from './owner-client.ts';
import { readPrivateFile } from './private-file.ts';
import { connectProved } from './proved-connection.ts';

const ENDPOINT_FILE = 'endpoint.json';
const TOKEN_FILE = 'owner-token';

/** What `endpoint.json` tells the owner's other programs (R-HTTP-03). */
const Endpoint = lazy(() =>
  z.object({
    // A token is sent there.
    url: z.string().regex(/^http:\/\/(127\.0\.0\.1|\[::1\]):\d{1,5}$/),
    pid: z.int().min(1),
    /** Tells this run of the program from every other. */
    instance: z.string().min(1),
    /** 32 bytes in hexadecimal digits. Whoever knows them is the program that wrote this file. */
    proof_key: z.string().regex(/^[0-9a-f]{64}$/),
    started_at: z.string(),
  }),
);
type Endpoint = SchemaOutput<typeof Endpoint>;

export interface PublishedEndpoint extends Disposable {
  /** The answer to a challenge, which nobody else can give. */
  readonly prove: (challenge: string) => string;
}

/** Tells the owner's programs where the memory is and how to get in (R-AUTH-08), until it is disposed. */
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
  // In this order: whoever sees the endpoint finds its token.
  writePrivateFile(join(folder, TOKEN_FILE), `${token}\n`);
  writePrivateFile(join(folder, ENDPOINT_FILE), `${JSON.stringify(endpoint, null, 2)}\n`);
  const key = Buffer.from(endpoint.proof_key, 'hex');
  return {
    prove: (challenge) => createHmac('sha256', key).update(challenge).digest('hex'),
    [Symbol.dispose]() {
      // A program that started since has written its own.
      if (present(folder)?.instance !== endpoint.instance) return;
      rmSync(join(folder, ENDPOINT_FILE), { force: true });
      rmSync(join(folder, TOKEN_FILE), { force: true });
    },
  };
}

/** Undefined also for what cannot be read: then nobody is told anything there. */
function present(folder: string): Endpoint | undefined {
  try {
    return readEndpoint(folder);
  } catch {
    return undefined;
  }
}

/** The process that says it listens on this port, if it lives. */
export function publisherPid(folder: string, port: number): number | undefined {
  const endpoint = present(folder);
  return endpoint && Number(new URL(endpoint.url).port) === port && isProcessAlive(endpoint.pid) ? endpoint.pid : undefined;
}

interface Way {
  readonly url: string;
  /** A connection that has proved where it leads. */
  readonly connect: () => Promise<Socket>;
}

/** To the program that serves this data folder, for whoever has a token of their own; undefined where none says that it does. */
export function findEndpoint(folder: string): Way | undefined {
  const endpoint = present(folder);
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
 * The program that serves this data folder, or undefined when none does: there is no endpoint.json, or what wrote it is gone.
 * It has proved itself before it is handed out, and proves itself on every connection before that carries the token: whoever
 * sits on its port learns nothing (R-HTTP-11).
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

/** A number may have gone to another process since: what it answers decides. */
export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCodeOf(error) === 'EPERM';
  }
}
