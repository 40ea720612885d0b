import * as z from 'zod';
import { type FailureCode, failures } from '../contract/failure.ts';
import { type OperationName, operations } from '../contract/operations.ts';
import type { TokenScope } from '../contract/token.ts';
import { Export, ImportLine } from '../contract/transfer.ts';
import { ImportReport } from './import-route.ts';
import { API_PATH, EMBEDDINGS_PATH, pathFieldOf, restInputSchema, type RestRow, restTable } from './rest-routes.ts';

type Schema = Readonly<Record<string, unknown>>;

interface Described {
  readonly summary: string;
  readonly description?: string | undefined;
  readonly scope: TokenScope | undefined;
  readonly parameters?: readonly object[];
  readonly requestBody?: object;
  readonly answer: object;
  readonly status?: number | undefined;
  /** Beyond those that every route may fail with. */
  readonly fails: readonly FailureCode[];
}

/** The document of this REST interface, made of the schemas that validate (R-REST-15). */
export function openApi(version: string): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Helmdeck Memory',
      version,
      description: 'One shared memory for all the AI agents on this machine. Every time is RFC 3339 in UTC.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    paths: paths(),
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      schemas: { Failure: failureSchema },
      responses: refusals,
    },
  };
}

function paths(): Record<string, Record<string, object>> {
  const all: Record<string, Record<string, object>> = {};
  const add = (method: string, path: string, route: Described): void => {
    (all[path] ??= {})[method.toLowerCase()] = spell(route);
  };
  for (const row of restTable) add(row.method, API_PATH + row.path, operationAt(row));
  for (const [method, path, route] of others()) add(method, path, route);
  return all;
}

const ALWAYS: readonly FailureCode[] = ['invalid_input', 'invalid_token', 'forbidden_host', 'internal', 'store_unavailable'];
const WRITES: readonly FailureCode[] = ['quota_exceeded', 'disk_full'];
const BODY: readonly FailureCode[] = ['payload_too_large', 'unsupported_media_type', 'rate_limited'];
/** Those that name something that may not be there. */
const NAMING: ReadonlySet<OperationName> = new Set<OperationName>([
  'recall',
  'patch',
  'history',
  'revokeToken',
  'endWindowSession',
  'pack',
  'runPack',
  'pipeline',
  'adoptPipeline',
  'deletePipeline',
  'runPipeline',
  'pipelineRun',
  'cancelPipelineRun',
  'checkForUpdates',
]);
/** What a pack may fail with, and whoever else asks outside. */
const RUNS: readonly FailureCode[] = ['cancelled', 'handler_failed', 'unavailable', 'timeout', 'rate_limited'];
const RUNNING: ReadonlySet<OperationName> = new Set<OperationName>(['runPack', 'runPipeline', 'checkForUpdates']);

function operationAt({ path, operation, inputIn: from, bodyField: bodyIs, status }: RestRow): Described {
  const { output, scope } = operations[operation];
  const { $schema: _, title, description, ...input } = restInputSchema(operation);
  const inPath = pathFieldOf(path);
  const inBody: Schema = bodyIs === undefined ? without(input, inPath) : fieldOf(input, bodyIs);
  return {
    summary: title ?? operation,
    description: bodyIs === undefined ? description : `${description} The body: ${String(inBody['description'])}`,
    scope,
    ...(from === 'body' && {
      requestBody: { required: needed(inBody).size > 0, content: { 'application/json': { schema: inBody } } },
    }),
    parameters: parametersOf(input, inPath).filter(
      ({ in: where, name }) => where === 'path' || from === 'query' || (bodyIs !== undefined && name !== bodyIs),
    ),
    answer: json(outputSchema(output())),
    status,
    fails: [
      ...(from === 'body' ? BODY : []),
      ...(scope === 'memory:read' ? [] : WRITES),
      ...(NAMING.has(operation) ? (['not_found'] as const) : []),
      ...(RUNNING.has(operation) ? RUNS : []),
    ],
  };
}

const fieldsOf = (schema: Schema) => (schema['properties'] ?? {}) as Record<string, Schema>;

const fieldOf = (schema: Schema, name: string): Schema => fieldsOf(schema)[name] ?? {};

function without(schema: Schema, name: string | undefined): Schema {
  if (name === undefined) return schema;
  const { [name]: _named, ...properties } = fieldsOf(schema);
  const required = [...needed(schema)].filter((one) => one !== name);
  const { required: _all, ...rest } = schema;
  return { ...rest, properties, ...(required.length > 0 && { required }) };
}

function parametersOf(input: Schema, inPath: string | undefined) {
  const required = needed(input);
  return Object.entries(fieldsOf(input)).map(([name, { description, ...schema }]) => ({
    name,
    in: name === inPath ? 'path' : 'query',
    required: required.has(name),
    ...(description !== undefined && { description }),
    schema,
  }));
}

/** Made when the document is: a start needs none of these schemas. */
const others = (): readonly (readonly [method: string, path: string, route: Described])[] => [
  [
    'GET',
    `${API_PATH}/memory/export`,
    {
      summary: 'Export every fact',
      description: 'One fact a line, the oldest first. An answer that is cut off is incomplete: ask again.',
      scope: operations.export.scope,
      answer: lines(outputSchema(Export().shape.facts.element)),
      fails: ['rate_limited'],
    },
  ],
  [
    'POST',
    `${API_PATH}/memory/import`,
    {
      summary: 'Import facts',
      description: 'One fact a line, of at most 1 MiB. A line that is wrong is reported and skipped; blank ones are skipped.',
      scope: operations.import.scope,
      parameters: [
        {
          name: 'dry_run',
          in: 'query',
          required: false,
          description: 'true checks every line and changes nothing.',
          schema: { type: 'boolean', default: false },
        },
      ],
      requestBody: { required: true, ...lines(bare(z.toJSONSchema(ImportLine(), { io: 'input' }))) },
      answer: json(outputSchema(ImportReport())),
      fails: [...BODY, ...WRITES],
    },
  ],
  [
    'POST',
    EMBEDDINGS_PATH,
    {
      summary: 'Embed texts',
      description: "Turns texts into vectors, on this machine alone, by OpenAI's wire.",
      scope: operations.embed.scope,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: bare(z.toJSONSchema(operations.embed.input(), { io: 'input' })) } },
      },
      answer: json(outputSchema(operations.embed.output())),
      fails: [...BODY, 'embeddings_unavailable'],
    },
  ],
  [
    'GET',
    `${API_PATH}/events`,
    {
      summary: 'Follow changes',
      description: 'Server-sent events with {namespace, kind} as data, whenever the memory of this caller changes.',
      scope: 'memory:read',
      answer: { content: { 'text/event-stream': { schema: { type: 'string' } } } },
      fails: ['rate_limited'],
    },
  ],
  [
    'POST',
    `${API_PATH}/window`,
    {
      summary: 'Make a link to the window',
      description: 'The link opens the window in a browser of this machine, once and within five minutes.',
      scope: 'admin',
      answer: json({
        type: 'object',
        properties: { link: { type: 'string', description: 'Keep it to yourself: whoever follows it first sees the memory.' } },
        required: ['link'],
      }),
      fails: ['insufficient_scope', 'not_found'],
    },
  ],
  ['GET', `${API_PATH}/version`, said('Show the version', { version: { type: 'string' } })],
  ['GET', `${API_PATH}/openapi.json`, said('Show this document', {})],
];

function said(summary: string, properties: Schema): Described {
  return {
    summary,
    scope: undefined,
    answer: json({ type: 'object', properties, required: Object.keys(properties) }),
    fails: [],
  };
}

function spell({ summary, description, scope, parameters, requestBody, answer, status = 200, fails }: Described): object {
  const statuses = new Set([...ALWAYS, ...fails].map((code) => failures[code].http));
  return {
    summary,
    description: [description, scope && `Needs the scope ${scope}.`].filter(Boolean).join(' ') || summary,
    ...(parameters && parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody }),
    responses: {
      [status]: { description: status === 200 ? 'As asked.' : 'Begun.', ...answer },
      ...Object.fromEntries([...statuses].map((code) => [code, { $ref: `#/components/responses/${code}` }])),
    },
  };
}

const failureSchema = {
  type: 'object',
  properties: {
    error: { type: 'string', enum: Object.keys(failures), description: 'What went wrong, as a code.' },
    message: { type: 'string', description: 'What is wrong and what to do, in one sentence.' },
  },
  required: ['error', 'message'],
  additionalProperties: false,
};

/** By status, each with the codes it may bear. */
const refusals = Object.fromEntries(
  [...Map.groupBy(Object.entries(failures), ([, { http }]) => http)].map(([status, rows]) => [
    status,
    {
      description: `${rows.map(([code]) => code).join(', ')}.`,
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Failure' } } },
    },
  ]),
);

function bare(schema: Schema): Schema {
  const { $schema: _, ...rest } = schema;
  return rest;
}

function outputSchema(output: z.ZodType): Schema {
  return bare(z.toJSONSchema(output, { io: 'output' }));
}

function needed({ required }: Schema): ReadonlySet<unknown> {
  return new Set(Array.isArray(required) ? required : []);
}

function json(schema: Schema): object {
  return { content: { 'application/json': { schema } } };
}

function lines(schema: Schema): object {
  return { content: { 'application/x-ndjson': { schema } } };
}
