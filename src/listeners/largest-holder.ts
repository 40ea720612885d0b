/**
 * Returns the items of the holder with the largest total size. When a shared limit is reached, the caller closes one of these
 * items.
 */
export function itemsOfLargestHolder<T>(
  items: Iterable<T>,
  holderOf: (item: T) => string,
  sizeOf: (item: T) => number,
): readonly T[] {
  let largest: readonly T[] = [];
  let largestSize = -1;
  for (const own of Map.groupBy(items, holderOf).values()) {
    const size = own.reduce((sum, item) => sum + sizeOf(item), 0);
    if (size > largestSize) [largest, largestSize] = [own, size];
  }
  return largest;
}

export function largestItemOfLargestHolder<T>(
  items: Iterable<T>,
  holderOf: (item: T) => string,
  sizeOf: (item: T) => number,
): T | undefined {
  return itemsOfLargestHolder(items, holderOf, sizeOf).toSorted((one, other) => sizeOf(other) - sizeOf(one))[0];
}

/**
 * Returns the items of the holder with the most items. Returns no items if that holder does not have more items than `holder`.
 */
export function itemsOfLargerHolder<T>(items: readonly T[], holderOf: (item: T) => string, holder: string): readonly T[] {
  const largest = itemsOfLargestHolder(items, holderOf, () => 1);
  const own = items.filter((item) => holderOf(item) === holder);
  return own.length < largest.length ? largest : [];
}
