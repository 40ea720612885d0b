import { VERSION } from '../../contract/updates.ts';

/** Whether `version` is newer than `than`, by the precedence rules of Semantic Versioning. */
export function isNewer(version: string, than: string): boolean {
  const [one, other] = [partsOf(version), partsOf(than)];
  const order = orderOf(one.numbers, other.numbers);
  if (order !== 0) return order > 0;
  // A release is newer than its pre-releases.
  if (one.preRelease.length === 0 || other.preRelease.length === 0) return one.preRelease.length < other.preRelease.length;
  return orderOf(one.preRelease, other.preRelease) > 0;
}

function partsOf(version: string): { readonly numbers: readonly string[]; readonly preRelease: readonly string[] } {
  const [, major = '', minor = '', patch = '', preRelease] = VERSION.exec(version) ?? [];
  return { numbers: [major, minor, patch], preRelease: preRelease?.split('.') ?? [] };
}

/** Compares two lists part by part. If one list is the start of the other, the longer list is newer. */
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
  // Compare the numbers as digits, because a number can be too long for an exact conversion.
  if (isNumber(one) && isNumber(other)) return one.length - other.length || (one < other ? -1 : one === other ? 0 : 1);
  if (isNumber(one) !== isNumber(other)) return isNumber(one) ? -1 : 1;
  return one === other ? 0 : one < other ? -1 : 1;
}
