const MOST_DEPTH = 6;
const MOST_CHARACTERS = 2000;

/** Formats the arguments of console.log as text. */
export const formatLogValues = (parts: readonly unknown[]): string =>
  parts
    .map((part) => (typeof part === 'string' ? part : textOf(part, [])))
    .join(' ')
    .slice(0, MOST_CHARACTERS);

function textOf(value: unknown, within: readonly object[]): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return `[Function${value.name === '' ? '' : ` ${value.name}`}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (value instanceof Error) return value.stack ?? String(value);
  if (within.includes(value)) return '[Circular]';
  if (within.length === MOST_DEPTH) return Array.isArray(value) ? '[…]' : '{…}';
  const inner = [...within, value];
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (Array.isArray(value)) return `[${value.map((part) => textOf(part, inner)).join(', ')}]`;
  if (value instanceof Set) return `Set {${[...value].map((part) => textOf(part, inner)).join(', ')}}`;
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  const fields = entries.map(([key, part]) => `${typeof key === 'string' ? key : textOf(key, inner)}: ${textOf(part, inner)}`);
  return `${value instanceof Map ? 'Map ' : ''}{ ${fields.join(', ')} }`.replace('{  }', '{}');
}
