const shift = (text: string, by: number): string =>
  text.replace(/[a-z]/g, (letter) => String.fromCodePoint((letter.codePointAt(0) ?? 0) - 0x61 + by));

/** Spellings that a reader or a careless comparison would confuse with a reserved name. */
export const disguises: Readonly<Record<string, (name: string) => string>> = {
  'as it is': (name) => name,
  'in upper case': (name) => name.toUpperCase(),
  'with a capital': (name) => name.replace(/^./, (letter) => letter.toUpperCase()),
  'in mixed case': (name) => name.replace(/[aeiou]/g, (letter) => letter.toUpperCase()),
  'between blanks': (name) => ` \t${name}`,
  'behind a no-break space': (name) => `\u00a0${name}`,
  'behind a byte order mark': (name) => `\ufeff${name}`,
  'in full width': (name) => shift(name, 0xff41).replace('_', '＿'),
  'in bold letters': (name) => shift(name, 0x1d41a),
  'in circled letters': (name) => shift(name, 0x24d0),
  'with a long s': (name) => name.replace('s', 'ſ'),
  'with a dotless i': (name) => name.replace('i', 'ı'),
  'with a zero-width space': (name) => name.replace('_', '\u200b_'),
  'with a zero-width joiner': (name) => name.replace('_', '_\u200d'),
  'with a soft hyphen': (name) => name.replace('_', '\u00ad_'),
  'with a grapheme joiner': (name) => name.replace('_', '\u034f_'),
  'with a Hangul filler': (name) => name.replace('_', '_\u3164'),
  'with an accent': (name) => name.replace('o', 'o\u0301').normalize('NFC'),
  'with a right-to-left override': (name) => `\u202e${name}`,
};
