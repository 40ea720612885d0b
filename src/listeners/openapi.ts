import * as z from 'zod';
import { type FailureCode, failures } from '../contract/failure.ts';
import { HeldReceipt, isHeldOperation } from '../contract/inbox.ts';
import { type OperationName, operations } from '../contract/operations.ts';
import type { TokenScope } from '../contract/token.ts';
import { Export, ImportLine } from '../contract/transfer.ts';
import { ImportReport } from './import-route.ts';
import { API_PATH, EMBEDDINGS_PATH, pathFieldOf, restInputSchema, type RestRow, restTable } from './rest-routes.ts';

type Schema = Readonly<Record<string, unknown>>;

interface RouteDescription {
  readonly summary: string;
  readonly description?: string | undefined;
  readonly scope: TokenScope | undefined;
  readonly parameters?: readonly object[];
  readonly requestBody?: object;
  readonly response: object;
  readonly status?: number | undefined;
  /** The failures of this route, except those that all routes have. */
  readonly failures: readonly FailureCode[];
}

/** Returns the OpenAPI document of the REST interface, generated from the schemas that also validate requests (R-REST-15). */
export function openApi(version: string): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Helmdeck Memory',
      version,
      description: 'One shared memory for all the AI agents on this machine. All times are in UTC, in the format of RFC 3339.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    paths: paths(),
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      schemas: { Failure: failureSchema },
      responses: failureResponses,
    },
  };
}

function paths(): Record<string, Record<string, object>> {
  const all: Record<string, Record<string, object>> = {};
  const add = (method: string, path: string, route: RouteDescription): void => {
    (all[path] ??= {})[method.toLowerCase()] = describeRoute(route);
  };
  for (const row of restTable) add(row.method, API_PATH + row.path, operationAt(row));
  for (const [method, path, route] of otherRoutes()) add(method, path, route);
  return all;
}

const COMMON_FAILURES: readonly FailureCode[] = [
  'invalid_input',
  'invalid_token',
  'forbidden_host',
  'internal',
  'store_unavailable',
];
const WRITE_FAILURES: readonly FailureCode[] = ['quota_exceeded', 'disk_full'];
const BODY_FAILURES: readonly FailureCode[] = ['payload_too_large', 'unsupported_media_type', 'rate_limited'];
const CAN_FAIL_NOT_FOUND: ReadonlySet<OperationName> = new Set<OperationName>([
  'remember',
  'recall',
  'patch',
  'history',
  'revokeToken',
  'acceptInbox',
  'dropInbox',
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
/** Failures of operations that run packs or send requests to other hosts. */
const RUN_FAILURES: readonly FailureCode[] = ['cancelled', 'handler_failed', 'unavailable', 'timeout', 'rate_limited'];
const CALLS_OUTSIDE: ReadonlySet<OperationName> = new Set<OperationName>(['runPack', 'runPipeline', 'checkForUpdates']);

function operationAt({ path, operation, inputIn: from, bodyField: bodyIs, status }: RestRow): RouteDescription {
  const { output, scope } = operations[operation];
  const { $schema: _, title, description, ...input } = restInputSchema(operation);
  const inPath = pathFieldOf(path);
  const inBody: Schema = bodyIs === undefined ? without(input, inPath) : fieldOf(input, bodyIs);
  return {
    summary: title ?? operation,
    description: bodyIs === undefined ? description : `${description} The request body: ${String(inBody['description'])}`,
    scope,
    ...(from === 'body' && {
      requestBody: { required: requiredOf(inBody).size > 0, content: { 'application/json': { schema: inBody } } },
    }),
    parameters: parametersOf(input, inPath).filter(
      ({ in: where, name }) => where === 'path' || from === 'query' || (bodyIs !== undefined && name !== bodyIs),
    ),
    response: json(isHeldOperation(operation) ? orHeld(outputSchema(output())) : outputSchema(output())),
    status,
    failures: [
      ...(from === 'body' ? BODY_FAILURES : []),
      ...(scope === 'memory:read' ? [] : WRITE_FAILURES),
      ...(CAN_FAIL_NOT_FOUND.has(operation) ? (['not_found'] as const) : []),
      ...(CALLS_OUTSIDE.has(operation) ? RUN_FAILURES : []),
    ],
  };
}

const fieldsOf = (schema: Schema) => (schema['properties'] ?? {}) as Record<string, Schema>;

const fieldOf = (schema: Schema, name: string): Schema => fieldsOf(schema)[name] ?? {};

function without(schema: Schema, name: string | undefined): Schema {
  if (name === undefined) return schema;
  const { [name]: _named, ...properties } = fieldsOf(schema);
  const required = [...requiredOf(schema)].filter((field) => field !== name);
  const { required: _all, ...rest } = schema;
  return { ...rest, properties, ...(required.length > 0 && { required }) };
}

function parametersOf(input: Schema, inPath: string | undefined) {
  const required = requiredOf(input);
  return Object.entries(fieldsOf(input)).map(([name, { description, ...schema }]) => ({
    name,
    in: name === inPath ? 'path' : 'query',
    required: required.has(name),
    ...(description !== undefined && { description }),
    schema,
  }));
}

/** Returns the routes that are not in `restTable`. A function, so that the schemas are not built at startup. */
const otherRoutes = (): readonly (readonly [method: string, path: string, route: RouteDescription])[] => [
  [
    'GET',
    `${API_PATH}/memory/export`,
    {
      summary: 'Export every fact',
      description:
        'Returns all facts, oldest first, as one JSON object per line. If the connection closes early, the export is incomplete; send the request again.',
      scope: operations.export.scope,
      response: lines(outputSchema(Export().shape.facts.element)),
      failures: ['rate_limited'],
    },
  ],
  [
    'POST',
    `${API_PATH}/memory/import`,
    {
      summary: 'Import facts',
      description:
        'Stores facts from lines of at most 1 MiB, each one JSON object. Invalid lines are reported and skipped. Blank lines are skipped.',
      scope: operations.import.scope,
      parameters: [
        {
          name: 'dry_run',
          in: 'query',
          required: false,
          description: 'If `true`, only checks the lines. Nothing is stored.',
          schema: { type: 'boolean', default: false },
        },
      ],
      requestBody: { required: true, ...lines(withoutDraft(z.toJSONSchema(ImportLine(), { io: 'input' }))) },
      response: json(outputSchema(ImportReport())),
      failures: [...BODY_FAILURES, ...WRITE_FAILURES],
    },
  ],
  [
    'POST',
    EMBEDDINGS_PATH,
    {
      summary: 'Embed texts',
      description:
        "Computes an embedding vector for each text, in the format of OpenAI's API. The texts do not leave this machine.",
      scope: operations.embed.scope,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: withoutDraft(z.toJSONSchema(operations.embed.input(), { io: 'input' })) } },
      },
      response: json(outputSchema(operations.embed.output())),
      failures: [...BODY_FAILURES, 'embeddings_unavailable'],
    },
  ],
  [
    'GET',
    `${API_PATH}/events`,
    {
      summary: 'Follow changes',
      description:
        "Sends a server-sent event whenever the caller's memory changes. Its data is a JSON object with `namespace` and `kind`.",
      scope: 'memory:read',
      response: { content: { 'text/event-stream': { schema: { type: 'string' } } } },
      failures: ['rate_limited'],
    },
  ],
  [
    'POST',
    `${API_PATH}/window`,
    {
      summary: 'Create a link to the window',
      description:
        'Creates a link that opens the window in a browser on this machine. The link works only once, within five minutes.',
      scope: 'admin',
      response: json({
        type: 'object',
        properties: {
          link: {
            type: 'string',
            description: 'The link. Keep it secret, because the first person who opens it can see the memory.',
          },
        },
        required: ['link'],
      }),
      failures: ['insufficient_scope', 'not_found'],
    },
  ],
  ['GET', `${API_PATH}/version`, simpleGet('Show the version', { version: { type: 'string' } })],
  ['GET', `${API_PATH}/openapi.json`, simpleGet('Show this document', {})],
];

function simpleGet(summary: string, properties: Schema): RouteDescription {
  return {
    summary,
    scope: undefined,
    response: json({ type: 'object', properties, required: Object.keys(properties) }),
    failures: [],
  };
}

function describeRoute({
  summary,
  description,
  scope,
  parameters,
  requestBody,
  response,
  status = 200,
  failures: routeFailures,
}: RouteDescription): object {
  const statuses = new Set([...COMMON_FAILURES, ...routeFailures].map((code) => failures[code].http));
  return {
    summary,
    description: [description, scope && `Needs the scope \`${scope}\`.`].filter(Boolean).join(' ') || summary,
    ...(parameters && parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody }),
    responses: {
      [status]: { description: status === 200 ? 'Success.' : 'Started.', ...response },
      ...Object.fromEntries([...statuses].map((code) => [code, { $ref: `#/components/responses/${code}` }])),
    },
  };
}

const failureSchema = {
  type: 'object',
  properties: {
    error: { type: 'string', enum: Object.keys(failures), description: 'Failure code.' },
    message: { type: 'string', description: 'The problem, and how to solve it.' },
  },
  required: ['error', 'message'],
  additionalProperties: false,
};

const failureResponses = Object.fromEntries(
  [...Map.groupBy(Object.entries(failures), ([, { http }]) => http)].map(([status, rows]) => [
    status,
    {
      description: `${rows.map(([code]) => code).join(', ')}.`,
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Failure' } } },
    },
  ]),
);

function withoutDraft(schema: Schema): Schema {
  const { $schema: _, ...rest } = schema;
  return rest;
}

function outputSchema(output: z.ZodType): Schema {
  return withoutDraft(z.toJSONSchema(output, { io: 'output' }));
}

/** Adds the receipt that a quarantined client gets (R-INBOX-02). */
function orHeld(schema: Schema): Schema {
  return { anyOf: [schema, outputSchema(HeldReceipt())] };
}

function requiredOf({ required }: Schema): ReadonlySet<unknown> {
  return new Set(Array.isArray(required) ? required : []);
}

function json(schema: Schema): object {
  return { content: { 'application/json': { schema } } };
}

function lines(schema: Schema): object {
  return { content: { 'application/x-ndjson': { schema } } };
}
