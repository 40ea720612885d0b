const onsets = [
  'b',
  'br',
  'd',
  'dr',
  'f',
  'g',
  'gl',
  'h',
  'k',
  'kl',
  'l',
  'm',
  'n',
  'p',
  'pr',
  's',
  'st',
  't',
  'tr',
  'v',
  'w',
  'z',
];
const vowels = ['a', 'e', 'i', 'o', 'u', 'ai', 'ou'];
const codas = ['', '', 'n', 'r', 'l', 's', 'm', 'nd', 'rt', 'ck'];

/** A seeded random generator: the same numbers in every run. */
export function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 0x1_0000_0000;
  };
}

/** A vocabulary of invented words with a Zipf distribution: the second word is half as frequent as the first. */
export function made(count: number, seed = 1): () => string {
  const random = numbers(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  const words = new Set<string>();
  while (words.size < count) {
    const syllables = 2 + Math.floor(random() * 2.4);
    words.add(Array.from({ length: syllables }, () => pick(onsets) + pick(vowels) + pick(codas)).join(''));
  }
  const list = [...words];
  return () => list[Math.floor(count ** random()) - 1] as string;
}
