import * as z from 'zod';
import { Failure } from '../contract/failure.ts';
import { type OperationName, operations } from '../contract/operations.ts';
import { hasScope } from '../core/access/caller.ts';
import type { Perform } from '../core/operations/perform.ts';
import type { BodyReader } from './request-body.ts';
import { abortOnClose, sendJson } from './response.ts';
import type { Exchange, Route } from './route.ts';

/** One operation at one path. */
export interface RestRow {
  readonly method: Route['method'];
  readonly path: string;
  readonly operation: OperationName;
  /** Where the input is, except for the field in the path. */
  readonly inputIn: 'body' | 'query';
  /** The one field whose value is the whole body; the other fields are in the query and the path. */
  readonly bodyField?: string;
  /** Status of a successful response, 200 by default. */
  readonly status?: 202;
}

/** Paths that only run an operation. Streams, and paths without an operation, have their own files. */
export const restTable: readonly RestRow[] = [
  { method: 'POST', path: '/memory/store', operation: 'remember', inputIn: 'body' },
  { method: 'POST', path: '/memory/forget', operation: 'forget', inputIn: 'body' },
  { method: 'GET', path: '/memory', operation: 'myMemory', inputIn: 'query' },
  { method: 'GET', path: '/memory/defaults', operation: 'myDefaults', inputIn: 'query' },
  { method: 'GET', path: '/memory/callers', operation: 'callers', inputIn: 'query' },
  { method: 'GET', path: '/memory/facts', operation: 'list', inputIn: 'query' },
  { method: 'GET', path: '/memory/fact', operation: 'recall', inputIn: 'query' },
  { method: 'PATCH', path: '/memory/fact', operation: 'patch', inputIn: 'body' },
  { method: 'GET', path: '/memory/history', operation: 'history', inputIn: 'query' },
  { method: 'GET', path: '/memory/search', operation: 'search', inputIn: 'query' },
  { method: 'GET', path: '/memory/context', operation: 'context', inputIn: 'query' },
  { method: 'POST', path: '/memory/undo', operation: 'undo', inputIn: 'body' },
  { method: 'GET', path: '/activity', operation: 'activity', inputIn: 'query' },
  { method: 'GET', path: '/status', operation: 'status', inputIn: 'query' },
  { method: 'GET', path: '/packs', operation: 'packs', inputIn: 'query' },
  { method: 'GET', path: '/packs/{name}', operation: 'pack', inputIn: 'query' },
  { method: 'POST', path: '/packs/{name}', operation: 'runPack', inputIn: 'body', bodyField: 'input' },
  { method: 'DELETE', path: '/sessions/{id}', operation: 'endSession', inputIn: 'query' },
  { method: 'GET', path: '/pipelines', operation: 'pipelines', inputIn: 'query' },
  { method: 'POST', path: '/pipelines', operation: 'createPipeline', inputIn: 'body' },
  { method: 'GET', path: '/pipelines/{id}', operation: 'pipeline', inputIn: 'query' },
  { method: 'DELETE', path: '/pipelines/{id}', operation: 'deletePipeline', inputIn: 'query' },
  { method: 'POST', path: '/pipelines/{id}/adopt', operation: 'adoptPipeline', inputIn: 'body' },
  { method: 'POST', path: '/pipelines/{id}/run', operation: 'runPipeline', inputIn: 'body', status: 202 },
  { method: 'GET', path: '/pipeline-runs', operation: 'pipelineRuns', inputIn: 'query' },
  { method: 'GET', path: '/pipeline-runs/{run_id}', operation: 'pipelineRun', inputIn: 'query' },
  { method: 'DELETE', path: '/pipeline-runs/{run_id}', operation: 'cancelPipelineRun', inputIn: 'query' },
  { method: 'GET', path: '/tokens', operation: 'tokens', inputIn: 'query' },
  { method: 'POST', path: '/tokens', operation: 'mintToken', inputIn: 'body' },
  { method: 'DELETE', path: '/tokens/{id}', operation: 'revokeToken', inputIn: 'query' },
  { method: 'GET', path: '/window-sessions', operation: 'windowSessions', inputIn: 'query' },
  { method: 'DELETE', path: '/window-sessions/{id}', operation: 'endWindowSession', inputIn: 'query' },
  { method: 'GET', path: '/clients', operation: 'clients', inputIn: 'query' },
  { method: 'POST', path: '/lock', operation: 'lock', inputIn: 'body' },
  { method: 'POST', path: '/unlock', operation: 'unlock', inputIn: 'body' },
  { method: 'POST', path: '/clock', operation: 'trustClock', inputIn: 'body' },
  { method: 'POST', path: '/key/rotate', operation: 'rotateKey', inputIn: 'body' },
  { method: 'POST', path: '/backup', operation: 'backup', inputIn: 'body' },
  { method: 'POST', path: '/updates', operation: 'checkForUpdates', inputIn: 'body' },
];

export const API_PATH = '/api/v1';

/** Fields with a shorter name in the query. */
const SHORT_NAMES: Partial<Record<OperationName, Readonly<Record<string, string>>>> = { search: { query: 'q' } };

/** The operation's input as JSON Schema, with the short names of the query. */
export function restInputSchema(operation: OperationName) {
  const { properties = {}, required = [], ...schema } = z.toJSONSchema(operations[operation].input(), { io: 'input' });
  const short = (name: string): string => SHORT_NAMES[operation]?.[name] ?? name;
  return {
    ...schema,
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, field]) => [short(name), short(name) === name ? field : withLongName(name, field)]),
    ),
    ...(required.length > 0 && { required: required.map(short) }),
  };
}

function withLongName(name: string, field: z.core.JSONSchema._JSONSchema): object {
  const { description = '', ...rest } = typeof field === 'object' ? field : {};
  return { ...rest, description: `${description} Error messages call it ${name}, which is accepted here too.` };
}

interface Deps {
  readonly perform: Perform;
  readonly bodies: BodyReader;
}

export const restRoutes = ({ perform, bodies }: Deps): Route[] =>
  restTable.map((row) => {
    const { method, path, operation, status } = row;
    const read = inputReader(row, bodies);
    const handle: Route['handle'] = MAY_BE_SLOW.has(operation)
      ? async (exchange) => {
          const { request, response, caller } = exchange;
          return perform(caller, operation, await read(exchange), { requester: request.socket, signal: abortOnClose(response) });
        }
      : async (exchange) => perform(exchange.caller, operation, await read(exchange), { requester: exchange.request.socket });
    return {
      method,
      path: API_PATH + path,
      transport: 'rest',
      operation,
      handle: status === undefined ? handle : withStatus(status, handle),
    };
  });

const withStatus =
  (status: number, handle: Route['handle']): Route['handle'] =>
  async (exchange) => {
    const result = await handle(exchange);
    const { response } = exchange;
    if (!response.destroyed) sendJson(response, status, JSON.stringify(result));
    return undefined;
  };

/** Operations that are cancelled if the client disconnects. */
const MAY_BE_SLOW: ReadonlySet<OperationName> = new Set<OperationName>(['runPack', 'checkForUpdates']);

type ReadInput = (exchange: Exchange) => unknown;

function inputReader({ operation, path, inputIn, bodyField }: RestRow, bodies: BodyReader): ReadInput {
  if (inputIn === 'query') return queryInput(operation, path);
  const field = pathFieldOf(path);
  if (bodyField === undefined) return field === undefined ? bodyInput(bodies) : bodyAndPathInput(bodies, field);
  const read = queryInput(operation, path, bodyField);
  return async (exchange) => {
    const { request, response, caller } = exchange;
    // The query is checked first, so that the body of an invalid request is not read.
    const fields = read(exchange);
    return { ...fields, [bodyField]: await bodies.readJson(request, response, caller.subject) };
  };
}

const bodyInput =
  (bodies: BodyReader): ReadInput =>
  ({ request, response, query, caller }) => {
    rejectQuery(query);
    return bodies.readJson(request, response, caller.subject);
  };

function bodyAndPathInput(bodies: BodyReader, field: string): ReadInput {
  const read = bodyInput(bodies);
  return async (exchange) => {
    const body = await read(exchange);
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
    if (Object.hasOwn(body, field)) throw new Failure('invalid_input', `${field} is in the path; leave it out of the body.`);
    return { ...body, [field]: decodePathParameter(exchange.parameter) };
  };
}

/** Unlike in a query, a plus sign in a path is not a space. */
const decodePathParameter = (text: string): string => decodeComponent(text.replaceAll('+', '%2B'));

function queryInput(operation: OperationName, path: string, bodyField?: string): (exchange: Exchange) => Record<string, unknown> {
  // Built on first use, so that the first request does not wait for the schemas of all operations.
  let reader: QueryReader | undefined;
  const read: QueryReader = (query) => (query === '' ? {} : (reader ??= createQueryReader(restInputSchema(operation)))(query));
  const field = pathFieldOf(path);
  if (field === undefined) return ({ query }) => withFullNames(operation, read(query));
  return ({ query, parameter: name }) => {
    const fields = read(query);
    if (Object.hasOwn(fields, field)) throw new Failure('invalid_input', `${field} is in the path; leave it out of the query.`);
    if (bodyField !== undefined && Object.hasOwn(fields, bodyField))
      throw new Failure('invalid_input', `${bodyField} is the body; leave it out of the query.`);
    return { ...fields, [field]: decodePathParameter(name) };
  };
}

/** Replaces short names by the operation's names. Error messages use the latter, so both are accepted, but not together. */
function withFullNames(operation: OperationName, fields: Record<string, unknown>): Record<string, unknown> {
  for (const [name, short] of Object.entries(SHORT_NAMES[operation] ?? {})) {
    if (!Object.hasOwn(fields, short)) continue;
    if (Object.hasOwn(fields, name))
      throw new Failure('invalid_input', `${short} and ${name} are the same field; send one of them.`);
    fields[name] = fields[short];
    delete fields[short];
  }
  return fields;
}

/** Parses a query into fields, converted to the types in the operation's schema. The schema later rejects unknown fields. */
type QueryReader = (query: string) => Record<string, unknown>;

interface InputSchema {
  readonly properties?: Readonly<Record<string, unknown>>;
}

/** Takes the JSON Schema of the operation's input. */
export function createQueryReader({ properties = {} }: InputSchema): QueryReader {
  const types = new Map(Object.entries(properties).map(([name, field]) => [name, (field as { type?: string }).type]));
  return (query) => {
    const fields = new Map<string, unknown>();
    for (const pair of query === '' ? [] : query.split('&')) {
      const equals = pair.indexOf('=');
      const name = decodeComponent(equals === -1 ? pair : pair.slice(0, equals));
      const text = decodeComponent(equals === -1 ? '' : pair.slice(equals + 1));
      if (fields.has(name)) throw new Failure('invalid_input', 'The query has the same field twice; send each field once.');
      fields.set(name, convert(text, types.get(name)));
    }
    // Object.fromEntries creates own properties, so a field named `__proto__` cannot change the prototype.
    return Object.fromEntries(fields);
  };
}

/** Leaves text that does not convert as it is; validation then reports the expected type. */
function convert(text: string, type: string | undefined): unknown {
  if (type === 'boolean') return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text;
  if ((type === 'integer' || type === 'number') && /^-?\d{1,17}(\.\d{1,17})?$/.test(text)) return Number(text);
  return text;
}

export function decodeComponent(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new Failure('invalid_input', 'The URL has an invalid percent-encoding; encode its text as UTF-8.');
  }
}

/** The name of the path parameter, if the path has one. */
export const pathFieldOf = (path: string): string | undefined => /\{(\w+)\}/.exec(path)?.[1];

/** Refuses a query that would be ignored, because the caller may expect it to have an effect. */
export function rejectQuery(query: string): void {
  if (query !== '') throw new Failure('invalid_input', 'This request takes no query; send the fields in the body.');
}

/** Every operation by name, for the owner's programs: the body is its input, the response its output. */
export const ownerRoute = ({ perform, bodies }: Deps): Route => ({
  method: 'POST',
  path: `${API_PATH}/owner/{operation}`,
  transport: 'owner',
  operation: 'owner',
  async handle({ request, response, caller, parameter, query }) {
    if (!hasScope(caller, 'admin')) {
      throw new Failure('insufficient_scope', 'Only the owner may do this; use a token with the scope admin.');
    }
    rejectQuery(query);
    const input = await bodies.readJson(request, response, caller.subject);
    return (await perform(caller, parameter, input, { signal: abortOnClose(response) })) as object;
  },
});

/** Outside /api/v1, because clients of OpenAI's API append this path to the base URL they are given (R-EMB-01). */
export const EMBEDDINGS_PATH = '/v1/embeddings';

export const embeddingsRoute = ({ perform, bodies }: Deps): Route => ({
  method: 'POST',
  path: EMBEDDINGS_PATH,
  transport: 'rest',
  operation: 'embed',
  async handle({ request, response, caller, query }) {
    rejectQuery(query);
    const input = await bodies.readJson(request, response, caller.subject);
    return perform(caller, 'embed', input, { signal: abortOnClose(response) });
  },
});
