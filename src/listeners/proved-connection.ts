import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { Failure } from '../contract/failure.ts';

const WITHIN_MS = 2000;
const MOST_CHARACTERS = 4096;
/** A whole one; what we answer ends with a brace, and so does no part of it. */
const ANSWER = /^HTTP\/1\.1 200 [^]*?\r\n\r\n\{[^]*\}$/;
const PROOF = /"proof":"([0-9a-f]{64})"\}$/;

/**
 * Connections to whoever holds the key, and to nobody else. The proof is asked for on the very connection that is handed out:
 * one that was asked for before could have come from another program on the same port.
 */
export const connectProved =
  (url: string, key: Uint8Array): (() => Promise<Socket>) =>
  async () => {
    const { host, hostname, port } = new URL(url);
    const socket = connect({ host: hostname.replace(/[[\]]/g, ''), port: Number(port) });
    try {
      await connected(socket);
      const challenge = randomBytes(32).toString('hex');
      const proof = await ask(socket, host, challenge);
      const wanted = createHmac('sha256', key).update(challenge).digest();
      if (!proof || !timingSafeEqual(Buffer.from(proof, 'hex'), wanted)) throw notOurs();
      return socket;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  };

function connected(socket: Socket): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once('connect', resolve).once('error', reject);
  return promise.finally(() => socket.off('connect', resolve).off('error', reject));
}

/** Spelled by hand: a client of Node would keep the connection for itself. Undefined for an answer that is not one of ours. */
function ask(socket: Socket, host: string, challenge: string): Promise<string | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  let text = '';
  const read = (chunk: Buffer): void => {
    text += chunk.toString('latin1');
    if (ANSWER.test(text) || text.length > MOST_CHARACTERS || !ours(text)) resolve(PROOF.exec(text)?.[1]);
  };
  const end = (): void => resolve(undefined);
  const late = setTimeout(() => reject(silent()), WITHIN_MS);
  socket.on('data', read).once('end', end).once('error', reject);
  socket.write(`GET /healthz?challenge=${challenge} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  return promise.finally(() => {
    clearTimeout(late);
    socket.off('data', read).off('end', end).off('error', reject);
  });
}

const BEGINNING = 'HTTP/1.1 200 ';
const ours = (text: string): boolean => text.startsWith(BEGINNING.slice(0, text.length)) || BEGINNING.startsWith(text);

const notOurs = (): Failure =>
  new Failure(
    'session_unavailable',
    'Another program answers where this memory should be, so nothing was sent to it; end that program, or start the memory again.',
  );

const silent = (): Failure =>
  new Failure('session_unavailable', 'The program that holds this memory does not answer; wait a moment, or start it again.');
