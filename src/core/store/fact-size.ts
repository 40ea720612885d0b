import type { Entry, FactWithHistory } from './store.ts';

/** About the bytes that a fact would take sealed, with its history. */
export function sizeOf(fact: FactWithHistory | undefined): number {
  if (!fact) return 0;
  const texts = ({ key, value, tags, author }: Entry): string[] => [
    key,
    value,
    ...tags,
    author.client,
    author.transport,
    author.token,
    author.definedBy ?? '',
  ];
  return [fact.entry, ...fact.versions].reduce((sum, entry) => sum + 64 + Buffer.byteLength(texts(entry).join('')), 0);
}
