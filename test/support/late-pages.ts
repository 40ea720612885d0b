import type { EntryPage, MemoryStore, Namespace, PageQuery, SpaceKind } from '../../src/core/store/store.ts';

/** Returns the store with pages that arrive late: `afterRead` runs after a page was read and before it is returned. */
export function withLatePages(store: MemoryStore, afterRead: () => Promise<unknown>): MemoryStore {
  const space = (namespace: Namespace, kind: SpaceKind) => {
    const real = store.space(namespace, kind);
    const page = async (query: PageQuery): Promise<EntryPage> => {
      const read = await real.page(query);
      await afterRead();
      return read;
    };
    return { ...real, page };
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'space') return space;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
