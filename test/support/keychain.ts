import type { Keychain } from '../../src/core/crypto/keys/keychain.ts';

/**
 * Imitates the observed behaviour of real keychains; the keychain lane tests the real ones. A locked keychain returns null for every
 * read and refuses only writes.
 */
export function fakeKeychain(
  state: { locked?: boolean; hangs?: boolean; fails?: string; forgets?: boolean } = {},
): Keychain & { items: Map<string, string> } {
  const items = new Map<string, string>();
  const answer = async <T>(given: () => T): Promise<T> => {
    if (state.fails) throw new Error(state.fails);
    if (state.hangs) return new Promise<never>(() => undefined);
    return given();
  };
  return {
    items,
    getPassword: (service, account) => answer(() => (state.locked ? null : (items.get(`${service} ${account}`) ?? null))),
    setPassword: (service, account, password) =>
      answer(() => {
        if (state.locked) throw new Error('Cannot create an item in a locked collection');
        if (!state.forgets) items.set(`${service} ${account}`, password);
      }),
    deletePassword: (service, account) => answer(() => items.delete(`${service} ${account}`)),
  };
}
