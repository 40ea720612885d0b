/** The items of the holder whose items add up to the largest size. When a shared limit is reached, one of them gives way. */
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

/** The largest item of that holder. */
export function largestItemOfLargestHolder<T>(
  items: Iterable<T>,
  holderOf: (item: T) => string,
  sizeOf: (item: T) => number,
): T | undefined {
  return itemsOfLargestHolder(items, holderOf, sizeOf).toSorted((one, other) => sizeOf(other) - sizeOf(one))[0];
}

/** The items of the holder with the most, if another holder opens one more. Empty if the opening holder would have the most. */
export function itemsToGiveWay<T>(items: readonly T[], holderOf: (item: T) => string, opening: string): readonly T[] {
  const largest = itemsOfLargestHolder(items, holderOf, () => 1);
  const own = items.filter((item) => holderOf(item) === opening);
  return own.length < largest.length ? largest : [];
}
