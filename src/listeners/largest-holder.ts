/** Groups the items by holder, such as a subject, and returns the group with the largest total size. */
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

/** Groups the items by holder, and returns the largest group. Returns no items if the group of `holder` is as large. */
export function itemsOfLargerHolder<T>(items: readonly T[], holderOf: (item: T) => string, holder: string): readonly T[] {
  const largest = itemsOfLargestHolder(items, holderOf, () => 1);
  const own = items.filter((item) => holderOf(item) === holder);
  return own.length < largest.length ? largest : [];
}
