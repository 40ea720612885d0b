/** Returns the items of the holder with the largest total size. When a shared limit is reached, one of them is given up. */
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

/** Returns the largest item of the holder with the largest total size. */
export function largestItemOfLargestHolder<T>(
  items: Iterable<T>,
  holderOf: (item: T) => string,
  sizeOf: (item: T) => number,
): T | undefined {
  return itemsOfLargestHolder(items, holderOf, sizeOf).toSorted((one, other) => sizeOf(other) - sizeOf(one))[0];
}

/** Returns the items of the holder with the most items, to make room for one more of `opening`. Empty if no holder has more. */
export function itemsToGiveWay<T>(items: readonly T[], holderOf: (item: T) => string, opening: string): readonly T[] {
  const largest = itemsOfLargestHolder(items, holderOf, () => 1);
  const own = items.filter((item) => holderOf(item) === opening);
  return own.length < largest.length ? largest : [];
}
