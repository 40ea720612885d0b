/**
 * Returns the value as JSON with sorted field names, so that the order of fields does not matter. Returns undefined if JSON
 * cannot represent the value: a `Map` would become `{}`, and NaN would become null.
 */
export function canonicalJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, (_name, part: unknown) => {
      if (!fitsJson(part)) throw new NotRepresentable();
      return typeof part === 'object' && part !== null && !Array.isArray(part)
        ? Object.fromEntries(Object.entries(part).toSorted(([one], [other]) => (one < other ? -1 : 1)))
        : part;
    });
  } catch (error) {
    if (error instanceof NotRepresentable) return undefined;
    throw error;
  }
}

class NotRepresentable extends Error {}

function fitsJson(part: unknown): boolean {
  if (typeof part === 'number') return Number.isFinite(part);
  if (typeof part !== 'object' || part === null) return !NOT_IN_JSON.has(typeof part);
  const kind: unknown = Object.getPrototypeOf(part);
  return kind === null || kind === Object.prototype || Array.isArray(part);
}

const NOT_IN_JSON = new Set(['bigint', 'function', 'symbol']);
