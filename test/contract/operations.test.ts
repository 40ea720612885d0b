import { describe, expect, expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import {
  type OperationInput,
  isOperation,
  operations,
  type OperationOutput,
  type OperationRequest,
} from '../../src/contract/operations.ts';

interface Schema {
  type?: string;
  title?: string;
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
}

const generated = (schema: z.ZodType) => z.toJSONSchema(schema, { io: 'input' }) as Schema;

/** The paths of all fields without a description, including fields in lists and unions. */
function undescribed(schema: Schema, path = ''): string[] {
  const fields = Object.entries(schema.properties ?? {}).flatMap(([name, field]) => [
    ...(field.description ? [] : [`${path}.${name}`]),
    ...undescribed(field, `${path}.${name}`),
  ]);
  const inner = [schema.items, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter((each) => each !== undefined);
  return [...fields, ...inner.flatMap((each) => undescribed(each, `${path}[]`))];
}

describe.each(Object.entries(operations))('%s (R-OPS-02)', (_name, { input, output }) => {
  test('takes an object with a title and a description', () => {
    expect(generated(input())).toMatchObject({ type: 'object', title: expect.any(String), description: expect.any(String) });
  });

  test('returns an object', () => {
    expect(generated(output())).toMatchObject({ type: 'object' });
  });

  test('describes every field', () => {
    expect([...undescribed(generated(input())), ...undescribed(generated(output()))]).toEqual([]);
  });
});

test('the check finds a field without a description', () => {
  const bare = z.object({ a: z.string(), b: z.array(z.object({ c: z.string() })).describe('b') });
  expect(undescribed(generated(bare))).toEqual(['.a', '.b[].c']);
});

test('no two inputs share a title (R-OPS-02)', () => {
  const titles = Object.values(operations).map(({ input }) => generated(input()).title);
  expect(new Set(titles).size).toBe(titles.length);
});

test('the schema of a fact states the rules that JSON Schema can express (R-OPS-02)', () => {
  expect(generated(operations.remember.input())).toMatchObject({
    required: ['key', 'value'],
    additionalProperties: false,
    properties: {
      category: { default: 'user_facts' },
      tags: { default: [], maxItems: 32 },
      ttl_seconds: { type: 'integer', default: 7_776_000, minimum: 0, maximum: 31_536_000 },
    },
  });
});

describe('the table (R-OPS-01)', () => {
  test('contains all operations', () => {
    expect(Object.keys(operations)).toEqual([
      'remember',
      'recall',
      'list',
      'patch',
      'forget',
      'undoForget',
      'history',
      'undo',
      'activity',
      'search',
      'query',
      'context',
      'brief',
      'myMemory',
      'myDefaults',
      'names',
      'callers',
      'export',
      'import',
      'previewImport',
      'status',
      'inbox',
      'acceptInbox',
      'dropInbox',
      'packs',
      'pack',
      'runPack',
      'endSession',
      'pipelines',
      'pipeline',
      'createPipeline',
      'adoptPipeline',
      'deletePipeline',
      'runPipeline',
      'finishPipeline',
      'pipelineRuns',
      'pipelineRun',
      'cancelPipelineRun',
      'embed',
      'embeddings',
      'setEmbeddings',
      'approveOllama',
      'pullModel',
      'cancelPull',
      'testEmbeddings',
      'meaning',
      'setMeaning',
      'rebuildMeaning',
      'mintToken',
      'tokens',
      'revokeToken',
      'pauseToken',
      'windowSessions',
      'endWindowSession',
      'clients',
      'planConnection',
      'connectClient',
      'disconnectClient',
      'offerPacks',
      'setCapture',
      'verifyClient',
      'credentials',
      'setCredential',
      'dropCredential',
      'lock',
      'unlock',
      'rotateKey',
      'makeRecoveryKey',
      'backup',
      'backups',
      'trustClock',
      'verify',
      'settings',
      'changeSetting',
      'checkForUpdates',
    ]);
  });

  test.each(['remember', 'forget', 'status'])('knows %s', (name) => {
    expect(isOperation(name)).toBe(true);
  });

  test.each(['', 'Remember', 'constructor', 'toString', '__proto__', 'hasOwnProperty'])('does not know "%s"', (name) => {
    expect(isOperation(name)).toBe(false);
  });

  test('no input names a subject, except where the owner assigns a token (R-ISO-02)', () => {
    const fields = Object.entries(operations)
      .filter(([name]) => !['mintToken', 'planConnection', 'connectClient'].includes(name))
      .flatMap(([, { input }]) => Object.keys(generated(input()).properties ?? {}));
    // A brief and a run may name a session of their own subject.
    expect(fields.filter((field) => /namespace|subject|caller|session/.test(field))).toEqual(['session', 'session']);
  });

  test('has types for both sides of the parser', () => {
    expectTypeOf<OperationRequest<'remember'>['ttl_seconds']>().toEqualTypeOf<number | undefined>();
    expectTypeOf<OperationInput<'remember'>['ttl_seconds']>().toEqualTypeOf<number>();
    expectTypeOf<OperationRequest<'forget'>['scope']>().toEqualTypeOf<string>();
    expectTypeOf<OperationOutput<'remember'>['status']>().toEqualTypeOf<'created' | 'updated' | 'unchanged'>();
  });
});

describe('a list of facts', () => {
  test('is the newest 50, without values', () => {
    expect(operations.list.input().parse({})).toEqual({ sort: 'updated', limit: 50, values: false });
  });

  test.each([
    { limit: 0 },
    { limit: 201 },
    { limit: '50' },
    { sort: 'created' },
    { values: 1 },
    { values: 'true' },
    { expiring_within: 0 },
    { expiring_within: 31_536_001 },
    { cursor: 7 },
    { cursor: 'a'.repeat(1025) },
    { prefix: null },
    { order: 'asc' },
  ])('is refused for %j (R-OPS-03)', (input) => {
    expect(operations.list.input().safeParse(input).success).toBe(false);
  });
});

describe('a time', () => {
  const { since } = operations.undo.input().shape;

  test.each(['2026-11-18T09:00:00Z', '2024-02-29T23:59:59.999Z'])('may be %s', (time) => {
    expect(since.parse(time)).toBe(time);
  });

  test.each([
    '',
    'yesterday',
    '2026-11-18',
    '2026-11-18T09:00:00',
    '2026-11-18T09:00:00+01:00',
    '2026-02-29T00:00:00Z',
    1_790_000_000,
  ])('is refused: %j', (time) => {
    expect(since.safeParse(time).success).toBe(false);
  });
});
