import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { onTestFinished } from 'vitest';
import { type HttpResponse, sendRequest, openConnection, type RawConnection, type ServedMemory } from '../../support/listener.ts';

export const MCP = '/api/v1/mcp';
export const QMD = '/api/v1/mcp/qmd';

export type ClientTransport = 'streamable HTTP' | 'HTTP with SSE';
export const CLIENT_TRANSPORTS: readonly ClientTransport[] = ['streamable HTTP', 'HTTP with SSE'];

/** The first generation of the official client. */
export async function connectClient(
  served: ServedMemory,
  token: string,
  way: ClientTransport = 'streamable HTTP',
  path = MCP,
): Promise<Client> {
  const client = new Client({ name: 'a test', version: '1' });
  const options = { requestInit: { headers: { Authorization: `Bearer ${token}` } } };
  const transport =
    way === 'streamable HTTP'
      ? new StreamableHTTPClientTransport(new URL(served.url + path), options)
      : new SSEClientTransport(new URL(`${served.url}${path}/sse`), options);
  await client.connect(transport);
  onTestFinished(() => client.close());
  return client;
}

/** Parses the single text block of a tool result. */
export const toolResultOf = (result: unknown): Record<string, unknown> => {
  const { content } = result as { content: { type: string; text: string }[] };
  return JSON.parse(content[0]?.text ?? '') as Record<string, unknown>;
};

export const initialize = (protocolVersion = '2025-11-25', id: string | number = 1) => ({
  jsonrpc: '2.0',
  id,
  method: 'initialize',
  params: { protocolVersion, capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
});

export interface RawSession {
  readonly session: string;
  readonly post: (body: object | string, headers?: readonly string[]) => Promise<HttpResponse>;
  readonly call: (name: string, given: object, id?: number) => Promise<HttpResponse>;
}

export const post = (
  served: ServedMemory,
  token: string,
  body: object | string,
  headers: readonly string[] = [],
  path = MCP,
): Promise<HttpResponse> => sendRequest(served.url, path, { token, body, headers });

/** Opens a session with raw requests. */
export async function openSession(served: ServedMemory, token: string, version = '2025-11-25', path = MCP): Promise<RawSession> {
  const greeting = await post(served, token, initialize(version), [], path);
  const session = String(greeting.headers['mcp-session-id']);
  const send: RawSession['post'] = (body, headers = []) =>
    post(served, token, body, ['Mcp-Session-Id', session, ...headers], path);
  return {
    session,
    post: send,
    call: (name, given, id = 2) => send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: given } }),
  };
}

/** Opens an event stream on a raw connection. */
export async function openStream(
  served: ServedMemory,
  token: string,
  path: string,
  headers: readonly string[] = [],
): Promise<RawConnection> {
  const line = await openConnection(served.port);
  const more = headers.map((part, index) => (index % 2 === 0 ? `${part}: ` : `${part}\r\n`)).join('');
  line.write(
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${served.port}\r\nAuthorization: Bearer ${token}\r\nAccept: text/event-stream\r\n${more}\r\n`,
  );
  return line;
}

/** Opens HTTP with SSE on a raw connection. Messages are posted to the path `messages`. */
export async function openSse(
  served: ServedMemory,
  token: string,
  path = MCP,
): Promise<{ line: RawConnection; messages: string }> {
  const line = await openStream(served, token, `${path}/sse`);
  const text = await line.waitFor(/data: \/api.*\n\n/);
  const [, messages = ''] = /data: (\/api\S+)/.exec(text) ?? [];
  return { line, messages };
}

export const rpcErrorOf = ({ json }: { readonly json: object }) =>
  (json as { error?: { code: number; message: string } }).error ?? { code: 0, message: '' };
