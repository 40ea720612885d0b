const MAX_DEPTH = 6;

export const formatLogValues = (parts: readonly unknown[]): string =>
  parts.map((part) => (typeof part === 'string' ? part : textOf(part, []))).join(' ');

function textOf(value: unknown, ancestors: readonly object[]): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return `[Function${value.name === '' ? '' : ` ${value.name}`}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (value instanceof Error) return value.stack ?? String(value);
  if (ancestors.includes(value)) return '[Circular]';
  if (ancestors.length === MAX_DEPTH) return Array.isArray(value) ? '[…]' : '{…}';
  const nested = [...ancestors, value];
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (Array.isArray(value)) return `[${value.map((part) => textOf(part, nested)).join(', ')}]`;
  if (value instanceof Set) return `Set {${[...value].map((part) => textOf(part, nested)).join(', ')}}`;
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  const fields = entries.map(([key, part]) => `${typeof key === 'string' ? key : textOf(key, nested)}: ${textOf(part, nested)}`);
  return `${value instanceof Map ? 'Map ' : ''}{ ${fields.join(', ')} }`.replace('{  }', '{}');
}
