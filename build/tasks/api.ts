import { failures } from '../../src/contract/failure.ts';
import { openApi } from '../../src/listeners/openapi.ts';
import { renderTable } from './table.ts';

/** The part of OpenAPI that our schemas use. */
interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

interface Operation {
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** Renders the response of GET /api/v1/openapi.json as a page. */
export function renderApi(): string {
  // Safe: openapi.test.ts validates the document.
  const { paths } = openApi('') as Document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ at: `${method.toUpperCase()} ${path}`, operation })),
  );
  return [
    '# The REST interface',
    'Written by `npm run docs` from the schemas that validate requests. `GET /api/v1/openapi.json` serves the same in machine-readable form.',
    'Every request except `GET /healthz` needs a token: `Authorization: Bearer …`. The token alone decides which memory the request reaches. A body is JSON with `Content-Type: application/json` and at most 1 MiB. Unknown fields are refused. Times are RFC 3339 in UTC. Requests with a foreign `Origin` are refused, so web pages cannot reach a memory.',
    renderTable(
      ['', 'does'],
      operations.map(({ at, operation }) => [`\`${at}\``, operation.summary]),
    ),
    ...operations.flatMap(section),
    '## Failures',
    'A failure is `{"error": code, "message": sentence}`. Programs should check the code. The sentence says what is wrong and what to do.',
    renderTable(
      ['code', 'status'],
      Object.entries(failures).map(([code, { http }]) => [`\`${code}\``, String(http)]),
    ),
  ]
    .join('\n\n')
    .concat('\n');
}

function section({ at, operation }: { at: string; operation: Operation }): string[] {
  const { summary, description, parameters = [], requestBody, responses } = operation;
  const asked = Object.entries(requestBody?.content ?? {});
  const [well = '200'] = Object.keys(responses).filter((status) => status.startsWith('2'));
  const answered = Object.entries(responses[well]?.content ?? {});
  const refused = Object.keys(responses).filter((status) => status !== well);
  return [
    `## ${summary}`,
    `\`${at}\``,
    description,
    ...(parameters.length > 0 ? [renderTable(['parameter', 'type', ''], parameters.map(parameterRow))] : []),
    ...asked.flatMap(([type, { schema }]) => described('Body', type, schema, 'field')),
    ...(well === '200' ? [] : [`Success status: ${well}.`]),
    ...answered.flatMap(([type, { schema }]) => described('Response', type, schema, 'response')),
    `Failure statuses: ${refused.join(', ')}.`,
  ];
}

const parameterRow = ({ name, required, description = '', schema }: NonNullable<Operation['parameters']>[number]): string[] => [
  `\`${name}\`${required ? '' : '?'}`,
  typeOf(schema),
  withDefault(description, schema),
];

function described(what: string, type: string, schema: Schema, head: string): string[] {
  const rows = rowsOf(schema, '');
  const note = type === 'application/json' ? [] : [`${what}: \`${type}\`${type.endsWith('ndjson') ? ', each line with' : ''}`];
  return [...note, ...(rows.length > 0 ? [renderTable([head, 'type', ''], rows.map(cellsOf))] : [])];
}

interface Row {
  readonly path: string;
  readonly always: boolean;
  readonly type: string;
  readonly says: string;
}

/** Lists every nested field with its path. */
function rowsOf(schema: Schema, path: string): Row[] {
  const { items, oneOf, anyOf } = schema;
  if (items) return rowsOf(items, `${path}[]`);
  const shapes = oneOf ?? anyOf ?? [schema];
  return merged(
    shapes.map(({ properties = {}, required = [] }) =>
      Object.entries(properties).flatMap(([name, field]) => {
        const here = path === '' ? name : `${path}.${name}`;
        const own = {
          path: here,
          always: required.includes(name),
          type: typeOf(field),
          says: withDefault(field.description ?? '', field),
        };
        return [own, ...rowsOf(field, here)];
      }),
    ),
  );
}

/** Lists a field that several variants share only once. */
function merged(shapes: readonly (readonly Row[])[]): Row[] {
  const byPath = Map.groupBy(shapes.flat(), ({ path }) => path);
  return [...byPath].map(([path, same]) => ({
    path,
    always: same.length === shapes.length && same.every(({ always }) => always),
    type: [...new Set(same.map(({ type }) => type))].join(', '),
    says: [...new Set(same.map(({ says }) => says))].join(' '),
  }));
}

const cellsOf = ({ path, always, type, says }: Row): string[] => [`\`${path}\`${always ? '' : '?'}`, type, says];

function typeOf({ type = '', const: only, enum: words, items, oneOf, anyOf, minimum, maximum, format }: Schema): string {
  if (only !== undefined) return `\`${JSON.stringify(only)}\``;
  if (words) return words.map((word) => `\`${JSON.stringify(word)}\``).join(', ');
  if (items) return `list of ${typeOf(items)}`;
  const several = oneOf ?? anyOf;
  if (several) return [...new Set(several.map(typeOf))].join(' or ');
  if (format === 'date-time') return 'time';
  const bounded = minimum !== undefined && maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER;
  return bounded ? `${type} ${minimum}–${maximum}` : type;
}

function withDefault(description: string, { default: usual }: Schema): string {
  if (usual === undefined || (Array.isArray(usual) && usual.length === 0)) return description;
  return `${description} Default: \`${JSON.stringify(usual)}\`.`;
}
