import { VERSION } from '../../contract/updates.ts';

/** By the order of Semantic Versioning. */
export function isNewer(version: string, than: string): boolean {
  const [one, other] = [partsOf(version), partsOf(than)];
  const order = orderOf(one.numbers, other.numbers);
  if (order !== 0) return order > 0;
  // What comes before a release is marked, and the release itself is not.
  if (one.marks.length === 0 || other.marks.length === 0) return one.marks.length < other.marks.length;
  return orderOf(one.marks, other.marks) > 0;
}

function partsOf(version: string): { readonly numbers: readonly string[]; readonly marks: readonly string[] } {
  const [, major = '', minor = '', patch = '', marks] = VERSION.exec(version) ?? [];
  return { numbers: [major, minor, patch], marks: marks?.split('.') ?? [] };
}

/** Part by part; of two that begin alike the longer one is later. */
function orderOf(ones: readonly string[], others: readonly string[]): number {
  for (const [at, one] of ones.entries()) {
    const other = others[at];
    const order = other === undefined ? 1 : orderOfParts(one, other);
    if (order !== 0) return order;
  }
  return ones.length - others.length;
}

const isNumber = (part: string): boolean => /^\d+$/.test(part);

function orderOfParts(one: string, other: string): number {
  // However long: the longer number is the larger one.
  if (isNumber(one) && isNumber(other)) return one.length - other.length || (one < other ? -1 : one === other ? 0 : 1);
  if (isNumber(one) !== isNumber(other)) return isNumber(one) ? -1 : 1;
  return one === other ? 0 : one < other ? -1 : 1;
}
