/** Changes of maps and other values that can be undone together. */
export class UndoLog {
  /** Reverses one change each, newest last. */
  readonly #steps: (() => unknown)[] = [];

  push(undo: () => unknown): void {
    this.#steps.push(undo);
  }

  set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const had = map.has(key);
    const before = map.get(key) as V;
    this.push(() => (had ? map.set(key, before) : map.delete(key)));
    map.set(key, value);
  }

  delete<K, V>(map: Map<K, V>, key: K): void {
    if (!map.has(key)) return;
    const before = map.get(key) as V;
    this.push(() => map.set(key, before));
    map.delete(key);
  }

  add<V>(values: Set<V>, value: V): void {
    if (values.has(value)) return;
    this.push(() => values.delete(value));
    values.add(value);
  }

  remove<V>(values: Set<V>, value: V): void {
    if (!values.delete(value)) return;
    this.push(() => values.add(value));
  }

  /** Undoes all changes. */
  run(): void {
    for (const undo of this.#steps.splice(0).toReversed()) undo();
  }

  clear(): void {
    this.#steps.length = 0;
  }
}
