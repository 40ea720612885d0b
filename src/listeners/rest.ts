import * as z from 'zod';
import { Failure } from '../contract/failure.ts';
import { type OperationName, operations } from '../contract/operations.ts';
import type { Perform } from '../core/perform.ts';
import type { Bodies } from './body.ts';
import { decode, queryReader, type ReadQuery } from './query.ts';
import type { Exchange, Route } from './routes.ts';

/** One operation at one address. */
export interface RestRow {
  readonly method: Route['method'];
  readonly path: string;
  readonly operation: OperationName;
  /** Where its input stands: in the body, or in the query and the field that the path names. */
  readonly from: 'body' | 'query';
}

/** What is an operation and nothing more. Streams, and what is no operation, have files of their own. */
export const restTable: readonly RestRow[] = [
  { method: 'POST', path: '/memory/store', operation: 'remember', from: 'body' },
  { method: 'POST', path: '/memory/forget', operation: 'forget', from: 'body' },
  { method: 'GET', path: '/memory', operation: 'myMemory', from: 'query' },
  { method: 'GET', path: '/memory/callers', operation: 'callers', from: 'query' },
  { method: 'GET', path: '/memory/facts', operation: 'list', from: 'query' },
  { method: 'GET', path: '/memory/fact', operation: 'recall', from: 'query' },
  { method: 'PATCH', path: '/memory/fact', operation: 'patch', from: 'body' },
  { method: 'GET', path: '/memory/history', operation: 'history', from: 'query' },
  { method: 'GET', path: '/memory/search', operation: 'search', from: 'query' },
  { method: 'GET', path: '/memory/context', operation: 'context', from: 'query' },
  { method: 'POST', path: '/memory/undo', operation: 'undo', from: 'body' },
  { method: 'GET', path: '/activity', operation: 'activity', from: 'query' },
  { method: 'GET', path: '/status', operation: 'status', from: 'query' },
  { method: 'GET', path: '/tokens', operation: 'tokens', from: 'query' },
  { method: 'POST', path: '/tokens', operation: 'mintToken', from: 'body' },
  { method: 'DELETE', path: '/tokens/{id}', operation: 'revokeToken', from: 'query' },
  { method: 'POST', path: '/lock', operation: 'lock', from: 'body' },
  { method: 'POST', path: '/unlock', operation: 'unlock', from: 'body' },
  { method: 'POST', path: '/key/rotate', operation: 'rotateKey', from: 'body' },
  { method: 'POST', path: '/backup', operation: 'backup', from: 'body' },
];

export const API = '/api/v1';

/** Fields with a shorter name in an address. */
const SHORT: Partial<Record<OperationName, Readonly<Record<string, string>>>> = { search: { query: 'q' } };

/** As JSON Schema, the form in which what is validated is documented. */
export function inputSchema(operation: OperationName) {
  const { properties = {}, required = [], ...schema } = z.toJSONSchema(operations[operation].input, { io: 'input' });
  const short = (name: string): string => SHORT[operation]?.[name] ?? name;
  return {
    ...schema,
    properties: Object.fromEntries(Object.entries(properties).map(([name, field]) => [short(name), field])),
    ...(required.length > 0 && { required: required.map(short) }),
  };
}

export const rest = ({ perform, bodies }: { perform: Perform; bodies: Bodies }): Route[] =>
  restTable.map(({ method, path, operation, from }) => {
    const read = from === 'body' ? bodyOf(bodies) : queryOf(operation, path);
    return {
      method,
      path: API + path,
      transport: 'rest',
      operation,
      handle: async (exchange) => perform(exchange.caller, operation, await read(exchange)),
    };
  });

type Read = (exchange: Exchange) => unknown;

const bodyOf =
  (bodies: Bodies): Read =>
  ({ request, response, query }) => {
    refuseQuery(query);
    return bodies.json(request, response);
  };

function queryOf(operation: OperationName, path: string): Read {
  // Made when it is first needed: nobody's first answer has to wait for the schemas of all operations.
  let reader: ReadQuery | undefined;
  const read: ReadQuery = (query) => (reader ??= queryReader(inputSchema(operation)))(query);
  const field = fieldIn(path);
  if (field === undefined) return ({ query }) => inFull(operation, read(query));
  return ({ query, name }) => {
    const fields = read(query);
    if (Object.hasOwn(fields, field))
      throw new Failure('invalid_input', `${field} stands in the path; leave it out of the query.`);
    return { ...fields, [field]: decode(name.replaceAll('+', '%2B')) };
  };
}

/** Under the names that the operation knows. Refusals use those too, so a field may be sent by either of its names, but once. */
function inFull(operation: OperationName, fields: Record<string, unknown>): Record<string, unknown> {
  const full = new Map(Object.entries(SHORT[operation] ?? {}).map(([name, short]) => [short, name]));
  if (full.size === 0) return fields;
  for (const [short, name] of full) {
    if (Object.hasOwn(fields, short) && Object.hasOwn(fields, name))
      throw new Failure('invalid_input', `${short} and ${name} are one field; send it once.`);
  }
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [full.get(name) ?? name, value]));
}

/** The field that a path names, if it names one. */
export const fieldIn = (path: string): string | undefined => /\{(\w+)\}$/.exec(path)?.[1];

/** Dropped in silence, it would answer something that was not asked. */
export function refuseQuery(query: string): void {
  if (query !== '') throw new Failure('invalid_input', 'This takes no query; send what you mean as the body.');
}
