const shift = (text: string, by: number): string =>
  text.replace(/[a-z]/g, (letter) => String.fromCodePoint((letter.codePointAt(0) ?? 0) - 0x61 + by));

/** The ways to write a reserved name of security.md, T23, as an agent sends them; `contract/reserved.test.ts` says how each works. */
const disguises: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => name.toUpperCase(),
  (name) => name.replace(/^./, (letter) => letter.toUpperCase()),
  (name) => name.replace(/[aeiou]/g, (letter) => letter.toUpperCase()),
  (name) => ` \t${name}`,
  (name) => `\u00a0${name}`,
  (name) => `\ufeff${name}`,
  (name) => shift(name, 0xff41).replace('_', '＿'),
  (name) => shift(name, 0x1d41a),
  (name) => shift(name, 0x24d0),
  (name) => name.replace('s', 'ſ'),
  (name) => name.replace('i', 'ı'),
  (name) => name.replace('_', '\u200b_'),
  (name) => name.replace('_', '_\u200d'),
  (name) => name.replace('_', '\u00ad_'),
  (name) => name.replace('_', '\u034f_'),
  (name) => name.replace('_', '_\u3164'),
  (name) => name.replace('o', 'o\u0301').normalize('NFC'),
  (name) => `\u202e${name}`,
];

export const spellings: readonly string[] = ['pack_history', 'pipeline_history'].flatMap((name) =>
  disguises.map((disguise) => disguise(name)),
);
