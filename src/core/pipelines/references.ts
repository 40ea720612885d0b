import { Failure } from '../../contract/failure.ts';
import { PIPELINE } from '../../contract/limits.ts';

/** A `${{ … }}` reference to an input, or to a path in the output of an earlier step. */
export type Reference =
  | { readonly to: 'input'; readonly name: string; readonly source: string }
  | { readonly to: 'output'; readonly step: string; readonly path: readonly string[]; readonly source: string };

/** Returns the value of a reference, or undefined for an input that the caller did not send. */
export type ReferenceLookup = (reference: Reference) => unknown;

const OPENING = '${{';
const REFERENCE = /\$\{\{[ \t]{0,8}([A-Za-z0-9_.-]{1,256})[ \t]{0,8}\}\}/g;

/** Returns all references in the input of a step. A `${{` without a valid reference counts as `unreadable`. */
export function referencesIn(value: unknown): (Reference | 'unreadable')[] {
  if (typeof value === 'string') {
    const found = [...value.matchAll(REFERENCE)].map(([, source = '']) => read(source) ?? 'unreadable');
    return value.split(OPENING).length - 1 === found.length ? found : [...found, 'unreadable'];
  }
  return partsOf(value).flatMap(referencesIn);
}

/** Whether a field name contains a reference. References in field names are not replaced. */
export const hasReferenceInFieldName = (value: unknown): boolean =>
  isObject(value) &&
  ((!Array.isArray(value) && Object.keys(value).some((name) => name.includes(OPENING))) ||
    partsOf(value).some(hasReferenceInFieldName));

function read(source: string): Reference | undefined {
  const [root, name, output, ...path] = source.split('.');
  if (name === undefined || name === '' || path.includes('')) return undefined;
  if (root === 'inputs' && output === undefined) return { to: 'input', name, source };
  if (root === 'steps' && output === 'output') return { to: 'output', step: name, path, source };
  return undefined;
}

/**
 * Replaces references with their values. A reference that is the whole string keeps the type of its value. In a longer string,
 * the value becomes text. Fields without a value are omitted.
 */
export function fillReferences(value: unknown, lookUp: ReferenceLookup): unknown {
  return createFiller(lookUp)(value);
}

/**
 * Creates a function that replaces references. The total size is limited, because a few references can insert a large value many
 * times.
 */
function createFiller(lookUp: ReferenceLookup): (value: unknown) => unknown {
  let left: number = PIPELINE.inputBytes;
  const known = new Map<string, { value: unknown; text: string; bytes: number }>();
  const take = (source: string): { value: unknown; text: string } => {
    let found = known.get(source);
    if (!found) {
      const reference = read(source);
      const value = reference && lookUp(reference);
      const text = value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);
      found = { value, text, bytes: Buffer.byteLength(text) };
      known.set(source, found);
    }
    left -= found.bytes;
    if (left >= 0) return found;
    throw new Failure(
      'invalid_input',
      `The values that a step refers to exceed ${PIPELINE.inputBytes / 1024} KiB; make the earlier steps return less data.`,
    );
  };
  const fill = (value: unknown): unknown => {
    if (typeof value === 'string') {
      const [whole] = value.matchAll(REFERENCE);
      if (whole?.[0] === value) return take(whole[1] ?? '').value;
      return value.replace(REFERENCE, (_all, source: string) => take(source).text);
    }
    if (Array.isArray(value)) return value.map((part) => fill(part) ?? null);
    if (typeof value !== 'object' || value === null) return value;
    const fields = Object.entries(value).map(([name, part]): [string, unknown] => [name, fill(part)]);
    return Object.fromEntries(fields.filter(([, part]) => part !== undefined));
  };
  return fill;
}

/** Returns the value at the path, or undefined. Reads only own properties of objects. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const part of path) {
    const within = Array.isArray(found) ? /^\d{1,6}$/.test(part) : isObject(found) && Object.hasOwn(found, part);
    if (!within) return undefined;
    found = (found as Record<string, unknown>)[part];
  }
  return found;
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const partsOf = (value: unknown): unknown[] => (isObject(value) ? Object.values(value) : []);

/**
 * Whether the value is nested at most `depth` levels deep. Call this before any recursive function, so that a deep value cannot
 * overflow the stack.
 */
export const isShallow = (value: unknown, depth: number = PIPELINE.depth): boolean =>
  depth > 0 ? partsOf(value).every((part) => isShallow(part, depth - 1)) : !isObject(value);
