import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { Failure } from '../contract/failure.ts';

const TIMEOUT_MS = 2000;
const MAX_CHARACTERS = 4096;
/**
 * Matches a complete response. Its JSON body has only one closing brace, at the end, so an incomplete response does not match.
 */
const RESPONSE = /^HTTP\/1\.1 200 [^]*?\r\n\r\n\{[^]*\}$/;
const PROOF = /"proof":"([0-9a-f]{64})"\}$/;

/**
 * Returns a function that opens a connection and checks that the other side has the key. The proof is requested on the same
 * connection that is returned, because a different program could listen on the port when the next connection is opened.
 */
export const connectProved =
  (url: string, key: Uint8Array): (() => Promise<Socket>) =>
  async () => {
    const { host, hostname, port } = new URL(url);
    const socket = connect({ host: hostname.replace(/[[\]]/g, ''), port: Number(port) });
    try {
      await connected(socket);
      const challenge = randomBytes(32).toString('hex');
      const proof = await requestProof(socket, host, challenge);
      const expected = createHmac('sha256', key).update(challenge).digest();
      if (!proof || !timingSafeEqual(Buffer.from(proof, 'hex'), expected)) throw wrongProgram();
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

/**
 * Sends the challenge and returns the proof. Returns undefined if the response is not a proof. Writes raw HTTP, because Node's
 * HTTP client would not return the socket.
 */
function requestProof(socket: Socket, host: string, challenge: string): Promise<string | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  let text = '';
  const onData = (chunk: Buffer): void => {
    text += chunk.toString('latin1');
    if (RESPONSE.test(text) || text.length > MAX_CHARACTERS || !startsWithStatus(text)) resolve(PROOF.exec(text)?.[1]);
  };
  const onEnd = (): void => resolve(undefined);
  const timeout = setTimeout(() => reject(noResponse()), TIMEOUT_MS);
  socket.on('data', onData).once('end', onEnd).once('error', reject);
  socket.write(`GET /healthz?challenge=${challenge} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  return promise.finally(() => {
    clearTimeout(timeout);
    socket.off('data', onData).off('end', onEnd).off('error', reject);
  });
}

const STATUS = 'HTTP/1.1 200 ';
const startsWithStatus = (text: string): boolean => text.startsWith(STATUS.slice(0, text.length));

const wrongProgram = (): Failure =>
  new Failure(
    'session_unavailable',
    'Another program is using the port of this memory, so no data was sent; stop that program or restart Helmdeck Memory.',
  );

const noResponse = (): Failure =>
  new Failure('session_unavailable', 'Helmdeck Memory does not respond; wait a moment or restart it.');
