/**
 * Chooses rows to evict: each time the least valuable row of the writer that holds the most, so that a writer that writes a lot
 * evicts its own rows and not those of another. Takes the writers of the rows, oldest first, and returns positions. Of rows of
 * equal value the oldest is evicted.
 */
export function fairEviction(
  writers: readonly string[],
  count: number,
  valueOf: (position: number) => number = () => 0,
): number[] {
  const held = new Map<string, number[]>();
  for (const [position, writer] of writers.entries()) {
    const positions = held.get(writer);
    if (positions) positions.push(position);
    else held.set(writer, [position]);
  }
  const evicted: number[] = [];
  while (evicted.length < Math.min(count, writers.length)) {
    // Among equals the writer met first is taken, which is the one with the oldest row.
    const largest = [...held.values()].reduce((most, one) => (one.length > most.length ? one : most));
    const least = largest.reduce((lowest, one) => (valueOf(one) < valueOf(lowest) ? one : lowest));
    largest.splice(largest.indexOf(least), 1);
    evicted.push(least);
  }
  return evicted;
}
