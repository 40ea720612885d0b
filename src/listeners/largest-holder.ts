/** The items of the subject whose items add up to the largest size. When a shared limit is reached, one of them gives way. */
export function itemsOfLargestHolder<T>(
  items: Iterable<T>,
  subjectOf: (item: T) => string,
  sizeOf: (item: T) => number,
): readonly T[] {
  let largest: readonly T[] = [];
  let largestSize = -1;
  for (const own of Map.groupBy(items, subjectOf).values()) {
    const size = own.reduce((sum, item) => sum + sizeOf(item), 0);
    if (size > largestSize) [largest, largestSize] = [own, size];
  }
  return largest;
}

/** The largest item of that subject. */
export function largestItemOfLargestHolder<T>(
  items: Iterable<T>,
  subjectOf: (item: T) => string,
  sizeOf: (item: T) => number,
): T | undefined {
  return itemsOfLargestHolder(items, subjectOf, sizeOf).toSorted((one, other) => sizeOf(other) - sizeOf(one))[0];
}
