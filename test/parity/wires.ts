import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { FetchLike, Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { expect } from 'vitest';
import { asFailure, type FailureCode, failures } from '../../src/contract/failure.ts';
import type { BridgeResponse } from '../../src/contract/window.ts';
import type { Caller } from '../../src/core/access/caller.ts';
import type { Perform } from '../../src/core/operations/perform.ts';
import type { Author } from '../../src/core/store/store.ts';
import { pathFieldOf, type RestRow, restTable } from '../../src/listeners/rest-routes.ts';
import { exitCodeOf } from '../../src/main/cli/exit-codes.ts';
import { BRIDGE } from '../integrations/bridge.ts';
import { runCli } from '../main/cli/run-cli.ts';
import { type HttpResponse, sendRequest as request } from '../support/listener.ts';
import { PACKS } from './packs.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The result of a call without the format of the wire. Each wire first checks its format. */
export interface Outcome {
  readonly answer?: Record<string, unknown>;
  readonly refused?: { readonly code?: string; readonly message: string };
}

interface Access {
  readonly url: string;
  readonly folder: string;
  readonly token: string;
  readonly now: () => number;
  readonly verify: (token: string) => Promise<Caller>;
  readonly perform: Perform;
}

type Ask = (operation: string, input: unknown) => Promise<Outcome>;
/** The client of calls on this wire, if it is not the client of the token. */
type Open = (access: Access) => Promise<{ ask: Ask; close: () => Promise<void>; author?: Author }>;

export type Name =
  | 'in process'
  | 'REST'
  | 'a line of an import'
  | 'MCP streamable HTTP'
  | 'MCP SSE'
  | 'the stdio bridge'
  | 'QMD streamable HTTP'
  | 'QMD SSE'
  | 'the owner route'
  | 'the command line'
  | 'the window';

interface Wire {
  readonly name: Name;
  /** As provenance tells it. */
  readonly transport: string;
  /** Available to the owner only. */
  readonly owner: boolean;
  /** Whether this wire can express the call. Some wires lack operations, or cannot send some invalid inputs. */
  readonly can: (operation: string, input: unknown) => boolean;
  readonly open: Open;
}

const stays = { close: () => Promise.resolve() };

const isFields = (input: unknown): input is Fields => typeof input === 'object' && input !== null && !Array.isArray(input);

/** In process: the reference for all other wires. */
const inProcess: Wire = {
  name: 'in process',
  transport: 'in process',
  owner: false,
  can: () => true,
  open: async ({ verify, token, perform }) => {
    const caller = await verify(token);
    const ask: Ask = async (operation, input) => {
      try {
        return { answer: plain(await perform(caller, operation, input)) };
      } catch (error) {
        const { code, message } = asFailure(error);
        return { refused: { code, message } };
      }
    };
    return { ask, ...stays };
  },
};

/** The value after a JSON round trip. */
const plain = (answer: unknown) => JSON.parse(JSON.stringify(answer)) as Record<string, unknown>;

function overHttp({ status, headers, json }: Pick<HttpResponse, 'status' | 'headers' | 'json'>): Outcome {
  if (status === 200 || status === 202) return { answer: json };
  const { error = '', message = '' } = json;
  expect({ status, fields: Object.keys(json) }).toEqual({ status: http(error), fields: ['error', 'message'] });
  expect(headers['retry-after'] !== undefined).toBe(error === 'rate_limited');
  return { refused: { code: error, message } };
}

const http = (code: string): number => failures[code as FailureCode].http;

const NUMBERS: ReadonlySet<string> = new Set(['limit', 'expiring_within']);
const FLAGS: ReadonlySet<string> = new Set(['values', 'all']);

/** A query contains only text, so some invalid types cannot be sent. */
const fitsAddress = ([field, value]: readonly [string, unknown]): boolean =>
  FLAGS.has(field)
    ? typeof value === 'boolean'
    : NUMBERS.has(field)
      ? typeof value === 'number'
      : typeof value === 'string' && value.isWellFormed();

const rest: Wire = {
  name: 'REST',
  transport: 'rest',
  owner: false,
  can(operation, input) {
    if (operation === 'export') return true;
    const row = restTable.find((one) => one.operation === operation);
    if (!row) return false;
    if (!isFields(input)) return row.inputIn === 'body' && pathFieldOf(row.path) === undefined;
    const { inAddress, inPath } = spread(row, input);
    const named = typeof inPath === 'string' && inPath !== '' && inPath.isWellFormed();
    return (named || pathFieldOf(row.path) === undefined) && Object.entries(inAddress).every(fitsAddress);
  },
  open: async ({ url, token }) => {
    const ask: Ask = async (operation, input) => {
      if (operation === 'export') {
        const answer = await request(url, '/api/v1/memory/export', { token });
        return answer.status === 200 ? { answer: { facts: lines(answer.text) } } : overHttp(answer);
      }
      const row = restTable.find((one) => one.operation === operation);
      if (!row) throw new Error(`REST has no ${operation}.`);
      const { inBody, inAddress, inPath } = isFields(input) ? spread(row, input) : { inBody: input, inAddress: {}, inPath: '' };
      const path = `/api/v1${row.path}`.replace(/\{\w+\}/, encodeURIComponent(inPath as string));
      const { method } = row;
      const fields = Object.entries(inAddress).map(([name, value]): [string, string] => [
        operation === 'search' && name === 'query' ? 'q' : name,
        String(value),
      ]);
      const query = fields.length > 0 ? `?${new URLSearchParams(fields).toString()}` : '';
      const body = row.inputIn === 'body' && inBody !== undefined ? { body: JSON.stringify(inBody) } : {};
      return overHttp(await request(url, path + query, { method, token, ...body }));
    };
    return { ask, ...stays };
  },
};

/** Distributes an input over path, query and body. */
function spread(
  { path, inputIn: from, bodyField: bodyIs }: RestRow,
  input: Fields,
): { inBody: unknown; inAddress: Fields; inPath: unknown } {
  const { [pathFieldOf(path) ?? '']: inPath, ...fields } = input;
  if (from === 'query') return { inBody: undefined, inAddress: fields, inPath };
  if (bodyIs === undefined) return { inBody: fields, inAddress: {}, inPath };
  const { [bodyIs]: inBody, ...inAddress } = fields;
  return { inBody, inAddress, inPath };
}

const lines = (text: string): unknown[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown);

/** Imports one fact among others. An error is reported by line number, without a code. */
const importing: Wire = {
  name: 'a line of an import',
  transport: 'rest',
  owner: false,
  can: (operation) => operation === 'remember',
  open: async ({ url, token }) => {
    const ask: Ask = async (_remember, fact) => {
      const body = `${JSON.stringify(fact)}\n`;
      const headers = ['Content-Type', 'application/x-ndjson'];
      const answer = await request(url, '/api/v1/memory/import', { token, body, headers });
      if (answer.status !== 200) return overHttp(answer);
      const { errors, ...counts } = answer.json as unknown as { errors: { line: number; message: string }[] };
      const [error] = errors;
      if (!error) return { answer: { status: Object.entries(counts).find(([, count]) => count === 1)?.[0] } };
      expect({ errors, counts }).toEqual({
        errors: [{ line: 1, message: error.message }],
        counts: { created: 0, updated: 0, unchanged: 0, dropped: 0 },
      });
      return { refused: { message: error.message } };
    };
    return { ask, ...stays };
  },
};

const TOOLS: Readonly<Record<string, string>> = {
  remember: 'memory_store',
  recall: 'memory_recall',
  search: 'memory_search',
  history: 'memory_history',
  patch: 'memory_renew',
  forget: 'memory_forget',
};

const RESOURCES: Readonly<Record<string, string>> = {
  myMemory: 'helmdeck://my-memory',
  context: 'helmdeck://context',
  myDefaults: 'helmdeck://my-defaults',
  packs: 'helmdeck://packs',
};

const TOOL_OF = new Map(PACKS.map(({ name }) => [name, name.replace('.', '_')]));

/** An unknown pack has no tool, so a call of it cannot be expressed. */
const fitsPack = (operation: string, input: unknown): boolean =>
  operation === 'runPack' &&
  isFields(input) &&
  TOOL_OF.has(String(input['name'])) &&
  only(input, 'name', 'input', 'session') &&
  input['input'] !== null;

const fitsTool = (operation: string, input: unknown): boolean =>
  Object.hasOwn(TOOLS, operation) &&
  // A call without arguments means an empty input.
  input !== null &&
  // The tool has no filters for writer and expiry.
  (operation !== 'search' || (isFields(input) && !('client' in input) && !('expiring_within' in input))) &&
  // The renewal tool changes the lifetime only.
  (operation !== 'patch' || (isFields(input) && !('category' in input) && !('tags' in input)));

const mcp = (name: Name, way: (access: Access) => Transport): Wire => ({
  name,
  transport: 'mcp',
  owner: false,
  can: (operation, input) => fitsTool(operation, input) || fitsPack(operation, input) || Object.hasOwn(RESOURCES, operation),
  open: async (access) => {
    const client = new Client({ name: 'a test', version: '1' });
    await client.connect(way(access));
    // From now on the client validates every result against the schema of its tool.
    await client.listTools();
    const ask: Ask = async (operation, input) => {
      const uri = RESOURCES[operation];
      if (uri !== undefined) {
        const { contents } = await client.readResource({ uri });
        return { answer: JSON.parse((contents[0] as { text: string }).text) as Record<string, unknown> };
      }
      return called(await client.callTool(operation === 'runPack' ? callOf(input as Fields) : toolCall(operation, input)));
    };
    return { ask, close: () => client.close() };
  },
});

/** The outcome of a tool call. */
function called(result: Awaited<ReturnType<Client['callTool']>>): Outcome {
  const [block, ...others] = result.content as { type: string; text: string }[];
  const said = JSON.parse(block?.text ?? '') as Record<string, unknown>;
  expect({ others, type: block?.type }).toEqual({ others: [], type: 'text' });
  if (result.isError !== true) {
    // Only the search server returns the answer as structure too (R-MCP-05).
    if (result.structuredContent !== undefined) expect(Object.keys(said)).toEqual(['results']);
    expect(result.structuredContent ?? said).toEqual(said);
    // The notice frames stored text as quoted data (R-MCP-08).
    const { notice: _notice, ...answer } = said;
    return { answer };
  }
  const { error, message } = said as { error: string; message: string };
  expect({ fields: Object.keys(said), whole: Object.keys(result).toSorted() }).toEqual({
    fields: ['error', 'message'],
    whole: ['content', 'isError'],
  });
  return { refused: { code: error, message } };
}

const toolCall = (operation: string, input: unknown) => ({
  name: TOOLS[operation] ?? '',
  arguments: input as Record<string, unknown>,
});

const callOf = ({ name, input, session }: Fields) => ({
  name: TOOL_OF.get(String(name)) ?? '',
  ...(input !== undefined && { arguments: input as Record<string, unknown> }),
  ...(session !== undefined && { _meta: { session } }),
});

const bearing = ({ token }: Pick<Access, 'token'>) => ({ requestInit: { headers: { Authorization: `Bearer ${token}` } } });

const streamable = mcp(
  'MCP streamable HTTP',
  (access) => new StreamableHTTPClientTransport(new URL(`${access.url}/api/v1/mcp`), bearing(access)),
);

const sse = mcp('MCP SSE', (access) => new SSEClientTransport(new URL(`${access.url}/api/v1/mcp/sse`), bearing(access)));

const bridge = mcp('the stdio bridge', ({ folder, token }) => {
  const env = { HELMDECK_DATA_DIR: folder, HELMDECK_TOKEN: token };
  return new StdioClientTransport({ command: process.execPath, args: [BRIDGE], env, stderr: 'inherit' });
});

/**
 * A search client. Without the scope, or while the memory is locked, it is refused before the MCP protocol starts, so it connects
 * with its first call.
 */
const qmd = (name: Name, way: (access: Access, fetch: FetchLike) => Transport): Wire => ({
  name,
  transport: 'qmd',
  owner: false,
  // A call without arguments means an empty input.
  can: (operation, input) => operation === 'query' && input !== null,
  open: (access) => {
    let client: Client | undefined;
    let away: Outcome | undefined;
    const turnedAway: FetchLike = async (url, init) => {
      const response = await fetch(url, init);
      if (!response.ok) {
        const json = (await response.clone().json()) as HttpResponse['json'];
        away = overHttp({ status: response.status, headers: Object.fromEntries(response.headers), json });
      }
      return response;
    };
    const comeIn = async (): Promise<Client> => {
      const coming = new Client({ name: 'a searcher', version: '1' });
      await coming.connect(way(access, turnedAway));
      // From now on the client validates every result against the schema of its tool.
      await coming.listTools();
      return coming;
    };
    const ask: Ask = async (operation, input) => {
      away = undefined;
      try {
        client ??= await comeIn();
        return called(await client.callTool({ name: operation, arguments: input as Record<string, unknown> }));
      } catch (error) {
        if (!away) throw error;
        return away;
      }
    };
    return Promise.resolve({ ask, close: async () => client?.close() });
  },
});

const qmdStreamable = qmd(
  'QMD streamable HTTP',
  (access, fetch) => new StreamableHTTPClientTransport(new URL(`${access.url}/api/v1/mcp/qmd`), { ...bearing(access), fetch }),
);

const qmdSse = qmd(
  'QMD SSE',
  (access, fetch) => new SSEClientTransport(new URL(`${access.url}/api/v1/mcp/qmd/sse`), { ...bearing(access), fetch }),
);

const door: Wire = {
  name: 'the owner route',
  transport: 'owner',
  owner: true,
  can: () => true,
  open: async ({ url, token }) => ({
    ask: async (operation, input) =>
      overHttp(await request(url, `/api/v1/owner/${encodeURIComponent(operation)}`, { token, body: JSON.stringify(input) })),
    ...stays,
  }),
};

/** The arguments of a command, or undefined if the command line cannot express the input. The value is piped in. */
type Typing = (fields: Fields) => { readonly args: readonly string[]; readonly input?: string } | undefined;

const isText = (value: unknown): value is string => typeof value === 'string';
/** Arguments of a process end at the first NUL. */
const typable = (value: unknown): value is string => isText(value) && value.isWellFormed() && !value.includes('\0');

const only = (fields: Fields, ...names: string[]): boolean => Object.keys(fields).every((name) => names.includes(name));
const option = (name: string, value: string | number): string => `--${name}=${value}`;

/** The options for texts, numbers and lists of texts, or undefined for other types. */
function options(fields: Fields, kinds: Readonly<Record<string, 'text' | 'number' | 'list' | 'flag'>>): string[] | undefined {
  const args: string[] = [];
  for (const [field, kind] of Object.entries(kinds)) {
    const value = fields[field];
    const name = { tags: 'tag', ttl_seconds: 'ttl', expiring_within: 'expiring-within' }[field] ?? field;
    if (value === undefined) continue;
    if (kind === 'text' && typable(value)) args.push(option(name, value));
    else if (kind === 'number' && typeof value === 'number' && /^\d{1,9}$/.test(`${value}`)) args.push(option(name, value));
    else if (kind === 'list' && Array.isArray(value) && value.every(typable)) args.push(...value.map((one) => option(name, one)));
    else if (kind === 'flag' && typeof value === 'boolean') args.push(...(value ? [`--${name}`] : []));
    else return undefined;
  }
  return args;
}

const aKey =
  (command: string): Typing =>
  (fields) =>
    only(fields, 'key') && typable(fields['key']) ? { args: [command, '--json', '--', fields['key']] } : undefined;

const nothing =
  (command: string): Typing =>
  () => ({ args: [command, '--json'] });

const COMMANDS: Readonly<Record<string, Typing>> = {
  remember(fields) {
    const { key, value } = fields;
    const more = options(fields, { category: 'text', tags: 'list', ttl_seconds: 'number' });
    if (!only(fields, 'key', 'value', 'category', 'tags', 'ttl_seconds') || !more || !typable(key)) return undefined;
    return isText(value) && value.isWellFormed() ? { args: ['remember', '--json', ...more, '--', key], input: value } : undefined;
  },
  recall: aKey('recall'),
  history: aKey('history'),
  patch(fields) {
    const { key, tags } = fields;
    const more = options(fields, { category: 'text', tags: 'list', ttl_seconds: 'number' });
    if (!only(fields, 'key', 'category', 'tags', 'ttl_seconds') || !more || !typable(key)) return undefined;
    const none = Array.isArray(tags) && tags.length === 0 ? ['--untag'] : [];
    return { args: ['renew', '--json', ...more, ...none, '--', key] };
  },
  forget(fields) {
    const { scope, dry_run: dry } = fields;
    if (!only(fields, 'scope', 'dry_run') || !typable(scope) || (dry !== undefined && typeof dry !== 'boolean')) return undefined;
    return { args: ['forget', '--json', dry === true ? '--dry-run' : '--yes', '--', scope] };
  },
  undo(fields) {
    const { client, since, dry_run: dry } = fields;
    if (!typable(client) || !isText(since) || Number.isNaN(Date.parse(since))) return undefined;
    return { args: ['undo', '--json', `--since=${since}`, dry === true ? '--dry-run' : '--yes', '--', client] };
  },
  search(fields) {
    const { query } = fields;
    const texts = { category: 'text', tag: 'text', client: 'text' } as const;
    const more = options(fields, { ...texts, expiring_within: 'number', limit: 'number' });
    if (!more || !only(fields, 'query', ...Object.keys(texts), 'expiring_within', 'limit')) return undefined;
    if (!typable(query) || query === '' || fields['limit'] === 0) return undefined;
    return { args: ['search', '--json', ...more, '--', query] };
  },
  list(fields) {
    // The command reads all pages, so limit and cursor cannot be given.
    const texts = { prefix: 'text', category: 'text', tag: 'text', client: 'text', sort: 'text' } as const;
    const more = options(fields, { ...texts, expiring_within: 'number', values: 'flag' });
    if (!more || !only(fields, ...Object.keys(texts), 'expiring_within', 'values')) return undefined;
    return { args: ['list', '--json', ...more] };
  },
  myMemory: nothing('memory'),
  context: nothing('context'),
  brief(fields) {
    const more = options(fields, { prompt: 'text', folder: 'text', session: 'text' });
    return more && only(fields, 'prompt', 'folder', 'session') ? { args: ['brief', '--json', ...more] } : undefined;
  },
  callers: nothing('callers'),
  export: nothing('export'),
  activity: (fields) => (only(fields) ? { args: ['activity', '--json'] } : undefined),
};

const commandLine: Wire = {
  name: 'the command line',
  transport: 'owner',
  owner: true,
  can: (operation, input) => isFields(input) && COMMANDS[operation]?.(input) !== undefined,
  open: async ({ folder, now }) => {
    const ask: Ask = async (operation, fields) => {
      const typing = COMMANDS[operation]?.(fields as Fields);
      if (!typing) throw new Error(`This cannot be typed: ${operation}.`);
      // Without a key, so the running program performs the command.
      const { input = '' } = typing;
      const { code, out, err } = await runCli(typing.args, { folder, environment: {}, input, now: now() });
      if (code !== 0) {
        const { error, message } = JSON.parse(err) as { error: string; message: string };
        expect({ code, out, err }).toEqual({
          code: exitCodeOf(error as FailureCode),
          out: '',
          err: `${JSON.stringify({ error, message })}\n`,
        });
        return { refused: { code: error, message } };
      }
      if (operation === 'export') return { answer: { facts: lines(out) } };
      const { more: _whether, ...answer } = JSON.parse(out) as Record<string, unknown>;
      return { answer };
    };
    return { ask, ...stays };
  },
};

/** The owner's window in a browser, with a session from a one-time link. */
const theWindow: Wire = {
  name: 'the window',
  transport: 'window',
  owner: true,
  can: () => true,
  open: async ({ url, token }) => {
    const { json } = await request(url, '/api/v1/window', { method: 'POST', token });
    const { link } = json as { link: string };
    const opened = await request(url, '/window/open', { body: { link: link.slice(`${url}/#link=`.length) } });
    const { session } = opened.json as { session: string };
    const ask: Ask = async (operation, input) => {
      const path = `/window/call/${encodeURIComponent(operation)}?subject=me`;
      const answer = await request(url, path, { method: 'POST', token: session, body: JSON.stringify(input) });
      if (answer.status !== 200) return overHttp(answer);
      const crossed = answer.json as unknown as BridgeResponse;
      // A refusal is a normal response. Only failures before the call use HTTP statuses.
      expect(crossed).toEqual(
        crossed.ok
          ? { ok: true, value: expect.any(Object) as object }
          : { ok: false, code: expect.toSatisfy(isCode) as string, message: expect.any(String) as string },
      );
      if (crossed.ok) return { answer: crossed.value as Record<string, unknown> };
      return { refused: { code: crossed.code, message: crossed.message } };
    };
    return { ask, ...stays, author: { client: 'window', origin: 'window', token: '' } };
  },
};

const isCode = (code: string): boolean => Object.hasOwn(failures, code);

export const WIRES: Readonly<Record<Name, Wire>> = Object.fromEntries(
  [inProcess, rest, importing, streamable, sse, bridge, qmdStreamable, qmdSse, door, commandLine, theWindow].map((wire) => [
    wire.name,
    wire,
  ]),
) as Record<Name, Wire>;

export const NAMES = Object.keys(WIRES) as readonly Name[];

interface Hits {
  readonly results: readonly { readonly file: string; readonly snippet: string; readonly docid: string }[];
}

/** A search client. */
export async function searcher(
  url: string,
  token: string,
): Promise<{ query: (input: Fields) => Promise<Hits>; close: () => Promise<void> }> {
  const client = new Client({ name: 'a searcher', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/api/v1/mcp/qmd`), bearing({ token })));
  return {
    query: async (input) => (await client.callTool({ name: 'query', arguments: input })).structuredContent as Hits,
    close: () => client.close(),
  };
}
