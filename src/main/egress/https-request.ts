import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import type { Socket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { Failure } from '../../contract/failure.ts';
import { EGRESS } from '../../contract/limits.ts';
import { ByteBuffer } from '../../core/file/byte-buffer.ts';
import type { EgressResponse } from '../../core/packs/egress.ts';

export type HttpsResponse = Pick<EgressResponse, 'status' | 'headers' | 'body' | 'truncated'>;

interface Limits {
  readonly maxBytes: number;
  readonly truncate: boolean;
  readonly onData: () => void;
}

/** Starts TLS. Resolves when the server's certificate is verified, before any request. Ignores NODE_TLS_REJECT_UNAUTHORIZED. */
export function startTls(socket: Socket, name: string, ca: string | undefined): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const tls = connect({
    socket,
    servername: name,
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.2',
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca }),
  });
  tls.once('secureConnect', () => resolve(tls));
  tls.on('error', reject);
  tls.once('close', () => reject(new Error('The connection was closed.')));
  return promise;
}

export function sendRequest(
  tls: TLSSocket,
  url: URL,
  headers: Readonly<Record<string, string>>,
  limits: Limits,
): Promise<HttpsResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpsResponse>();
  const sent = request({
    // If `createConnection` is set, Node uses no agent, and therefore neither a connection pool nor a proxy.
    createConnection: () => tls,
    path: url.pathname + url.search,
    headers,
    setHost: false,
    maxHeaderSize: EGRESS.headerBytes,
  });
  // Disable the limit on the number of response headers, because a header that Node drops could forbid caching. `maxHeaderSize`
  // still applies.
  sent.maxHeadersCount = 0;
  sent.on('response', (response) => void read(response, url.hostname, limits).then(resolve, reject));
  sent.on('error', (error) =>
    reject(tooManyHeaders(error) ? new Failure('handler_failed', `${url.hostname} ${TOO_MANY_HEADERS}`) : error),
  );
  sent.once('close', () => reject(new Error('The connection was closed.')));
  sent.end();
  return promise;
}

const TOO_MANY_HEADERS = `sent more than ${EGRESS.headerBytes / 1024} KiB of headers, so the response was refused; try another host.`;

const tooManyHeaders = (error: Error): boolean => 'code' in error && error.code === 'HPE_HEADER_OVERFLOW';

function read(response: IncomingMessage, host: string, { maxBytes, truncate, onData }: Limits): Promise<HttpsResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpsResponse>();
  const { statusCode: status = 0 } = response;
  const headers = new Map(Object.entries(response.headersDistinct).map(([name, values = []]) => [name, values.join(', ')]));
  const finish = (body: Buffer, truncated = false): void => resolve({ status, headers, body, truncated });
  const refuse = (why: string): void => reject(new Failure('handler_failed', `${host} ${why}`));
  onData();
  // Refuse compressed bodies, because a small compressed body could expand without limit.
  if (!['', 'identity'].includes((headers.get('content-encoding') ?? '').toLowerCase())) {
    refuse(
      'sent a compressed response although the request did not allow compression, so the response was refused; request another page.',
    );
    return promise;
  }
  const tooLong = `sent more than ${maxBytes.toLocaleString('en-US')} bytes; request less data.`;
  if (!truncate && Number(headers.get('content-length')) > maxBytes) {
    refuse(tooLong);
    return promise;
  }
  const body = new ByteBuffer();
  response.on('data', (chunk: Buffer) => {
    onData();
    body.append(chunk);
    if (body.length <= maxBytes) return;
    response.pause();
    if (truncate) finish(body.bytes().subarray(0, maxBytes), true);
    else refuse(tooLong);
  });
  response.on('end', () => finish(body.bytes()));
  response.on('error', reject);
  return promise;
}
