/**
 * Chooses rows to evict: each time the oldest row of the client that holds the most, so that a client that writes a lot
 * evicts its own rows and not those of another client. Takes the clients of the rows, oldest first, and returns positions.
 */
export function fairEviction(clients: readonly string[], count: number): number[] {
  const held = new Map<string, number[]>();
  for (const [position, client] of clients.entries()) {
    const positions = held.get(client);
    if (positions) positions.push(position);
    else held.set(client, [position]);
  }
  const evicted: number[] = [];
  while (evicted.length < Math.min(count, clients.length)) {
    // Among equals the client met first is taken, which is the one with the oldest row.
    const largest = [...held.values()].reduce((most, one) => (one.length > most.length ? one : most));
    evicted.push(largest.shift() as number);
  }
  return evicted;
}
