import * as z from 'zod';
import { Failure } from '../contract/failure.ts';
import { type OperationName, operations } from '../contract/operations.ts';
import { hasScope } from '../core/access/caller.ts';
import type { Perform } from '../core/operations/perform.ts';
import type { BodyReader } from './request-body.ts';
import { abortOnClose, sendJson } from './response.ts';
import type { Exchange, Route } from './route.ts';

export interface RestRow {
  readonly method: Route['method'];
  readonly path: string;
  readonly operation: OperationName;
  /** The part of the request that contains the input fields, except a field in the path. */
  readonly inputIn: 'body' | 'query';
  /** Name of the input field whose value is the whole body. The other fields are in the query and the path. */
  readonly bodyField?: string;
  /** HTTP status of a successful response. 200 by default. */
  readonly status?: 202;
}

/** The routes that only run an operation. Streams, and routes without an operation, are defined in other files. */
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
  { method: 'POST', path: '/brief', operation: 'brief', inputIn: 'body' },
  { method: 'POST', path: '/memory/undo', operation: 'undo', inputIn: 'body' },
  { method: 'GET', path: '/inbox', operation: 'inbox', inputIn: 'query' },
  { method: 'POST', path: '/inbox/{id}/accept', operation: 'acceptInbox', inputIn: 'body' },
  { method: 'DELETE', path: '/inbox/{id}', operation: 'dropInbox', inputIn: 'query' },
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

/** Shorter names of input fields, for use in the query. */
const SHORT_NAMES: Partial<Record<OperationName, Readonly<Record<string, string>>>> = { search: { query: 'q' } };

/** Returns the JSON Schema of an operation's input, with the short field names. */
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
  return { ...rest, description: `${description} The full name \`${name}\`, which error messages use, is accepted too.` };
}

interface Deps {
  readonly perform: Perform;
  readonly bodies: BodyReader;
}

export const restRoutes = ({ perform, bodies }: Deps): Route[] =>
  restTable.map((row) => {
    const { method, path, operation, status } = row;
    const read = inputReader(row, bodies);
    const handle: Route['handle'] = CANCELLABLE.has(operation)
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

/** Operations that are cancelled when the client disconnects, because they can be slow. */
const CANCELLABLE: ReadonlySet<OperationName> = new Set<OperationName>(['runPack', 'checkForUpdates', 'search', 'brief']);

type ReadInput = (exchange: Exchange) => unknown;

function inputReader({ operation, path, inputIn, bodyField }: RestRow, bodies: BodyReader): ReadInput {
  if (inputIn === 'query') return queryInput(operation, path);
  const field = pathFieldOf(path);
  if (bodyField === undefined) return field === undefined ? bodyInput(bodies) : bodyAndPathInput(bodies, field);
  const read = queryInput(operation, path, bodyField);
  return async (exchange) => {
    const { request, response, caller } = exchange;
    // The query is read before the body, so that an invalid query is refused without reading the body.
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

/** Decodes a path parameter. In a path, unlike in a query, a plus sign does not mean a space. */
const decodePathParameter = (text: string): string => decodeComponent(text.replaceAll('+', '%2B'));

function queryInput(operation: OperationName, path: string, bodyField?: string): (exchange: Exchange) => Record<string, unknown> {
  // Each route builds its schema at its first request, because building the schemas of all routes at startup would be slow.
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

/**
 * Replaces short field names by full names. Full names are accepted too, because error messages use them, but not both in one
 * request.
 */
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

/** Parses a query into fields, with values of the types in the operation's schema. Validation later refuses unknown fields. */
type QueryReader = (query: string) => Record<string, unknown>;

interface InputSchema {
  readonly properties?: Readonly<Record<string, unknown>>;
}

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
    // Object.fromEntries creates own properties only, so a field named `__proto__` cannot change the prototype.
    return Object.fromEntries(fields);
  };
}

/**
 * Converts text to a boolean or a number. Text that cannot be converted is returned unchanged, and validation then reports the
 * expected type.
 */
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
    throw new Failure('invalid_input', 'The URL is not valid percent-encoded UTF-8; encode its parameters again.');
  }
}

export const pathFieldOf = (path: string): string | undefined => /\{(\w+)\}/.exec(path)?.[1];

/** Refuses a request that has a query. The query would be ignored, but the caller expects it to have an effect. */
export function rejectQuery(query: string): void {
  if (query !== '') throw new Failure('invalid_input', 'This request must not have a query; send the fields in the body.');
}

/**
 * The route with which the owner's other programs call any operation by its name. The body is the input, and the response is the
 * output.
 */
export const ownerRoute = ({ perform, bodies }: Deps): Route => ({
  method: 'POST',
  path: `${API_PATH}/owner/{operation}`,
  transport: 'owner',
  operation: 'owner',
  async handle({ request, response, caller, parameter, query }) {
    if (!hasScope(caller, 'admin')) {
      throw new Failure('insufficient_scope', 'Only the owner is allowed to do this; use a token with the scope `admin`.');
    }
    rejectQuery(query);
    const input = await bodies.readJson(request, response, caller.subject);
    return (await perform(caller, parameter, input, { signal: abortOnClose(response) })) as object;
  },
});

/**
 * Path of the OpenAI-compatible embeddings route. It is not under `/api/v1`, because OpenAI clients append this path to a base
 * URL (R-EMB-01).
 */
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
