import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { operations } from '../../src/contract/operations.ts';
import { openApi } from '../../src/listeners/openapi.ts';
import { restInputSchema, restTable } from '../../src/listeners/rest-routes.ts';
import { type HttpResponse, sendRequest, ALL_ROUTES, serve } from '../support/listener.ts';

interface Schema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly examples?: readonly unknown[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly additionalProperties?: boolean;
}

interface Described {
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema }> };
  readonly responses: Record<string, { readonly content?: Record<string, { readonly schema: Schema }>; readonly $ref?: string }>;
}

interface Document {
  readonly paths: Record<string, Record<string, Described>>;
  readonly components: {
    readonly responses: Record<string, unknown>;
    readonly schemas: Record<string, Schema>;
    readonly securitySchemes: Record<string, { readonly scheme: string }>;
  };
}

const document = openApi('1.2.3') as Document;
const failure = document.components.schemas['Failure'] ?? {};
const described = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, about]) => ({ method: method.toUpperCase(), path, about })),
);

const parametersOf = (about: Described | undefined) =>
  Object.fromEntries((about?.parameters ?? []).map(({ name, schema }) => [name, schema]));

const omit = (field: Schema): Schema => Object.fromEntries(Object.entries(field).filter(([name]) => name !== 'description'));

/** A parameter has its description next to its schema. */
const withoutNotes = (properties: object | undefined, from: string) =>
  from === 'body' ? properties : Object.fromEntries(Object.entries(properties ?? {}).map(([name, field]) => [name, omit(field)]));

describe('openapi.json (R-REST-15)', () => {
  test('is served, and describes every route', async () => {
    const { url, owner } = await serve();
    const answer = await sendRequest(url, '/api/v1/openapi.json', { token: owner });
    expect(answer.json).toEqual(JSON.parse(JSON.stringify(document)));
    const known = ALL_ROUTES.filter(([, path]) => !path.includes('/owner/')).map(
      ([method, path]) =>
        `${method} ${path.replace('/test.echo', '/{name}').replace('-runs/one', '-runs/{run_id}').replace('/one', '/{id}')}`,
    );
    expect(described.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(known.toSorted());
    expect(document.components.securitySchemes['bearer']?.scheme).toBe('bearer');
  });

  test('contains the schemas that validate', () => {
    for (const { method, path, operation, inputIn: from, bodyField: bodyIs } of restTable) {
      const about = document.paths[`/api/v1${path}`]?.[method.toLowerCase()];
      const body = about?.requestBody?.content['application/json']?.schema;
      const { [bodyIs ?? '']: whole, ...others } = restInputSchema(operation).properties;
      const inPath = /\{(\w+)\}/.exec(path)?.[1] ?? '';
      const { [inPath]: named, ...rest } = others ?? {};
      const fields = from === 'query' || bodyIs !== undefined ? others : { ...(named !== undefined && { [inPath]: named }) };
      const shown = { body: bodyIs === undefined ? body?.properties : body, fields: parametersOf(about) };
      const wanted = {
        body: from === 'query' ? undefined : (whole ?? rest),
        fields: withoutNotes(fields, 'query'),
      };
      expect({ path, from, ...shown }).toEqual({ path, from, ...wanted });
    }
  });

  test('mentions the full name of a field with a short name in the query', () => {
    const parameters = document.paths['/api/v1/memory/search']?.['get']?.parameters ?? [];
    expect(parameters.find(({ name }) => name === 'q')?.description).toMatch(
      /The full name `query`, which error messages use, is accepted too/,
    );
    expect(parameters.map(({ name }) => name)).not.toContain('query');
  });

  test('has no dangling references', () => {
    const named = described.flatMap(({ about }) => Object.values(about.responses).flatMap(({ $ref }) => $ref ?? []));
    const known = Object.keys(document.components.responses).map((status) => `#/components/responses/${status}`);
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
    expect(named.length).toBeGreaterThan(100);
  });
});

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(
    'key:a',
    'a',
    'me',
    'preferences/editor',
    'all',
    '2026-11-18T09:00:00Z',
    '__proto__',
    '../..',
    '%00',
    '\uD800',
    'x'.repeat(600),
  ),
);

/** Generates values that mostly fit a schema; patterns and bounds are ignored. */
function like(schema: Schema): fc.Arbitrary<unknown> {
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return fc.oneof(...choices.map(like));
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.examples) return fc.oneof(fc.constantFrom(...schema.examples), text);
  switch (schema.type) {
    case 'integer':
    case 'number':
      return fc.integer({ min: schema.minimum ?? 0, max: Math.min(schema.maximum ?? 1e6, 1e9) });
    case 'boolean':
      return fc.boolean();
    case 'array':
      return fc.array(like(schema.items ?? {}), { maxLength: 4 });
    case 'object': {
      const fields = Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, field]) => [name, like(field)]));
      return fc.record(fields, { requiredKeys: [...(schema.required ?? [])] });
    }
    case 'string':
      return text;
    case undefined:
    default:
      return fc.anything();
  }
}

/** Mutates such a value. */
const mutated = (schema: Schema): fc.Arbitrary<unknown> =>
  fc.tuple(like(schema), fc.jsonValue(), text, fc.nat(3)).map(([value, other, name, way]) => {
    if (way === 0 || typeof value !== 'object' || value === null) return other;
    const names = Object.keys(value);
    const victim = names[names.length >> 1] ?? name;
    if (way === 1) return { ...value, [victim]: other };
    if (way === 2) return { ...value, [name]: other };
    return Object.fromEntries(Object.entries(value).filter(([key]) => key !== victim));
  });

const spelled = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
const encoded = (value: unknown): string => encodeURIComponent(spelled(value).toWellFormed());

/** Validates a response against its schema. Supports only the keywords that we generate. */
function fits(schema: Schema, value: unknown): boolean {
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choices.some((choice) => fits(choice, value));
  if (schema.const !== undefined) return schema.const === value;
  if (schema.enum) return schema.enum.includes(value as string);
  switch (schema.type) {
    case 'array':
      return Array.isArray(value) && value.every((item) => fits(schema.items ?? {}, item));
    case 'object':
      return (
        typeof value === 'object' &&
        value !== null &&
        (schema.required ?? []).every((name) => Object.hasOwn(value, name)) &&
        Object.entries(value).every(([name, field]) => {
          const known = schema.properties?.[name];
          return known ? fits(known, field) : schema.additionalProperties !== false;
        })
      );
    case 'integer':
      return Number.isInteger(value);
    case 'number':
      return typeof value === 'number';
    case undefined:
      return true;
    default:
      return typeof value === schema.type;
  }
}

describe('every route, with documented and mutated requests', () => {
  const asked = described.filter(({ path }) => !path.endsWith('/events'));

  test.each(asked)('$method $path responds as documented, and never with an internal error', async ({ method, path, about }) => {
    const { url, owner: token } = await serve();
    const check = (answer: HttpResponse): void => {
      const schema = about.responses[answer.status]?.content?.['application/json']?.schema ?? {};
      expect(
        {
          documented: Object.hasOwn(about.responses, answer.status),
          // A memory in RAM has no backups and no embeddings, so these failures are expected. Other 5xx responses are errors.
          fault: answer.status >= 500 && !/^(embeddings_|key_)?unavailable$/.test(answer.json.error ?? ''),
          fits: fits(answer.status < 300 ? schema : failure, answer.json),
        },
        `${answer.status} ${answer.text}`,
      ).toEqual({ documented: true, fault: false, fits: true });
    };
    const query = (fields: Record<string, unknown>): string =>
      Object.entries(fields)
        .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
        .join('&');
    const schema: Schema = {
      type: 'object',
      properties: Object.fromEntries((about.parameters ?? []).map((parameter) => [parameter.name, parameter.schema])),
      required: (about.parameters ?? []).filter(({ required }) => required).map(({ name }) => name),
    };
    const ndjson = about.requestBody?.content['application/x-ndjson'];
    const json = about.requestBody?.content['application/json'];
    const bodySchema = (json ?? ndjson)?.schema;
    const runs = 65;
    const send = async (fields: unknown, body: unknown): Promise<void> => {
      const all = (typeof fields === 'object' && fields !== null ? fields : { x: fields }) as Record<string, unknown>;
      const named = /\{(\w+)\}/.exec(path)?.[1] ?? '';
      const { [named]: name = 'x', ...rest } = all;
      const at = `${path.replace(`{${named}}`, encoded(name) || 'x')}?${query(rest)}`;
      const bytes = body === undefined ? undefined : ndjson ? `${JSON.stringify(body)}\n` : JSON.stringify(body);
      const headers = bytes === undefined ? [] : ['Content-Type', ndjson ? 'application/x-ndjson' : 'application/json'];
      check(
        await sendRequest(url, at.replace(/\?$/, ''), { method, token, headers, ...(bytes !== undefined && { body: bytes }) }),
      );
    };
    const bodies = (make: (schema: Schema) => fc.Arbitrary<unknown>) => (bodySchema ? make(bodySchema) : fc.constant(undefined));
    await fc.assert(fc.asyncProperty(like(schema), bodies(like), send), { numRuns: runs });
    await fc.assert(fc.asyncProperty(mutated(schema), bodies(mutated), send), { numRuns: runs });
    if (bodySchema) await fc.assert(fc.asyncProperty(fc.constant({}), bodies(mutated), send), { numRuns: runs });
    expect((await sendRequest(url, path.replace(/\{\w+\}/, 'x'), { method })).status).toBe(401);
  });

  test('some mutations are refused and some are accepted', async () => {
    const schema = restInputSchema('remember') as Schema;
    const taken = fc.sample(like(schema), 200).filter((value) => operations.remember.input().safeParse(value).success);
    const refused = fc.sample(mutated(schema), 200).filter((value) => !operations.remember.input().safeParse(value).success);
    expect(taken.length).toBeGreaterThan(5);
    expect(refused.length).toBeGreaterThan(100);
  });
});
