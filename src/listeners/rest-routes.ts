import * as z from 'zod';
import { Failure } from '../contract/failure.ts';
import { type OperationName, operations } from '../contract/operations.ts';
import type { Perform } from '../core/operations/perform.ts';
import { abortOnClose } from './hang-up.ts';
import { decodeComponent, createQueryReader, type QueryReader } from './query.ts';
import type { BodyReader } from './request-body.ts';
import { sendJson } from './response.ts';
import type { Exchange, Route } from './router.ts';

/** One operation at one address. */
export interface RestRow {
  readonly method: Route['method'];
  readonly path: string;
  readonly operation: OperationName;
  /** Where its input stands, but for a field that the path names. */
  readonly inputIn: 'body' | 'query';
  /** The one field that the body is; the others stand in the query and the path. */
  readonly bodyField?: string;
  /** Of an answer; 200 unless said. */
  readonly status?: 202;
}

/** What is an operation and nothing more. Streams, and what is no operation, have files of their own. */
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

/** Fields with a shorter name in an address. */
const SHORT: Partial<Record<OperationName, Readonly<Record<string, string>>>> = { search: { query: 'q' } };

/** As JSON Schema, the form in which what is validated is documented. */
export function restInputSchema(operation: OperationName) {
  const { properties = {}, required = [], ...schema } = z.toJSONSchema(operations[operation].input(), { io: 'input' });
  const short = (name: string): string => SHORT[operation]?.[name] ?? name;
  return {
    ...schema,
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, field]) => [short(name), short(name) === name ? field : alsoCalled(name, field)]),
    ),
    ...(required.length > 0 && { required: required.map(short) }),
  };
}

function alsoCalled(name: string, field: z.core.JSONSchema._JSONSchema): object {
  const { description = '', ...rest } = typeof field === 'object' ? field : {};
  return { ...rest, description: `${description} Refusals call it ${name}, and it may be sent under that name instead.` };
}

export const restRoutes = ({ perform, bodies }: { perform: Perform; bodies: BodyReader }): Route[] =>
  restTable.map((row) => {
    const { method, path, operation, status } = row;
    const read = readerOf(row, bodies);
    const handle: Route['handle'] = LONG.has(operation)
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
      handle: status === undefined ? handle : answering(status, handle),
    };
  });

const answering =
  (status: number, handle: Route['handle']): Route['handle'] =>
  async (exchange) => {
    const result = await handle(exchange);
    const { response } = exchange;
    if (!response.destroyed) sendJson(response, status, JSON.stringify(result));
    return undefined;
  };

/** What may take long enough that its client goes meanwhile. */
const LONG: ReadonlySet<OperationName> = new Set<OperationName>(['runPack', 'checkForUpdates']);

type Read = (exchange: Exchange) => unknown;

function readerOf({ operation, path, inputIn: from, bodyField: bodyIs }: RestRow, bodies: BodyReader): Read {
  if (from === 'query') return queryOf(operation, path);
  const field = pathFieldOf(path);
  if (bodyIs === undefined) return field === undefined ? bodyOf(bodies) : besidePath(bodies, field);
  const read = queryOf(operation, path, bodyIs);
  return async (exchange) => {
    const { request, response, caller } = exchange;
    // What the address says is looked at first: then no body of a wrong request has to be read.
    const fields = read(exchange);
    return { ...fields, [bodyIs]: await bodies.readJson(request, response, caller.subject) };
  };
}

const bodyOf =
  (bodies: BodyReader): Read =>
  ({ request, response, query, caller }) => {
    rejectQuery(query);
    return bodies.readJson(request, response, caller.subject);
  };

/** The body, with what the path names. */
function besidePath(bodies: BodyReader, field: string): Read {
  const read = bodyOf(bodies);
  return async (exchange) => {
    const body = await read(exchange);
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
    if (Object.hasOwn(body, field)) throw new Failure('invalid_input', `${field} stands in the path; leave it out of the body.`);
    return { ...body, [field]: named(exchange.parameter) };
  };
}

/** What stands in the path in place of a name. */
const named = (name: string): string => decodeComponent(name.replaceAll('+', '%2B'));

function queryOf(operation: OperationName, path: string, bodyIs?: string): (exchange: Exchange) => Record<string, unknown> {
  // Made when it is first needed: nobody's first answer has to wait for the schemas of all operations.
  let reader: QueryReader | undefined;
  const read: QueryReader = (query) => (query === '' ? {} : (reader ??= createQueryReader(restInputSchema(operation)))(query));
  const field = pathFieldOf(path);
  if (field === undefined) return ({ query }) => inFull(operation, read(query));
  return ({ query, parameter: name }) => {
    const fields = read(query);
    if (Object.hasOwn(fields, field))
      throw new Failure('invalid_input', `${field} stands in the path; leave it out of the query.`);
    if (bodyIs !== undefined && Object.hasOwn(fields, bodyIs))
      throw new Failure('invalid_input', `${bodyIs} is what the body holds; leave it out of the query.`);
    return { ...fields, [field]: named(name) };
  };
}

/** Under the names that the operation knows. Refusals use those too, so a field may be sent by either of its names, but once. */
function inFull(operation: OperationName, fields: Record<string, unknown>): Record<string, unknown> {
  for (const [name, short] of Object.entries(SHORT[operation] ?? {})) {
    if (!Object.hasOwn(fields, short)) continue;
    if (Object.hasOwn(fields, name)) throw new Failure('invalid_input', `${short} and ${name} are one field; send it once.`);
    fields[name] = fields[short];
    delete fields[short];
  }
  return fields;
}

/** The field that a path names, if it names one. */
export const pathFieldOf = (path: string): string | undefined => /\{(\w+)\}/.exec(path)?.[1];

/** Dropped in silence, it would answer something that was not asked. */
export function rejectQuery(query: string): void {
  if (query !== '') throw new Failure('invalid_input', 'This takes no query; send what you mean as the body.');
}
