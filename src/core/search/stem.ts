/** Endings of Russian and its neighbours, accents already gone, the longest first. */
const cyrillic =
  /(?:ами|ями|ого|его|ому|ему|ыми|ими|иях|ах|ях|ои|еи|ыи|ии|ая|яя|ое|ее|ые|ие|ия|ию|ов|ев|ом|ем|ам|ям|ую|юю|ых|их|а|я|о|е|и|ы|у|ю|ь)$/;
const arabicArticle = /^(?:وال|بال|كال|فال|ال|لل)/;
const arabicEnding = /(?:ات|ان|ون|ين|ها|يه|ه|ي)$/;
const hebrewArticle = /^ה/;

/** The part that the forms of a word share, for the commonest inflections only: a stem too few is found by likeness. */
export function stemOf(term: string): string {
  const first = term.charCodeAt(0);
  if (first >= 0x61 && first <= 0x7a) return latin(term);
  if (first >= 0x400 && first < 0x530) return cut(term, cyrillic, 3);
  if (first >= 0x600 && first < 0x700) return cut(cut(term, arabicArticle, 3), arabicEnding, 3);
  if (first >= 0x590 && first < 0x600) return cut(term, hebrewArticle, 3);
  return term;
}

function cut(term: string, ending: RegExp, least: number): string {
  const stem = term.replace(ending, '');
  return stem.length >= least ? stem : term;
}

const vowel = /[aeiouy]/;
const hissing = /(?:s|x|z|ch|sh)es$/;
const doubled = /([bdfgmnprt])\1$/;

const endings = ['ing', 'ed', 'ment', 'ly'];

/** English first, as most of what programs remember is; the plural serves French and Spanish too. */
function latin(term: string): string {
  if (term.length < 4) return term;
  let stem = singular(term);
  for (const ending of endings) {
    if (!stem.endsWith(ending)) continue;
    const rest = stem.slice(0, -ending.length);
    if (rest.length < 3 || !vowel.test(rest)) continue;
    stem = rest.replace(doubled, '$1');
    break;
  }
  if (stem.length > 5 && (stem.endsWith('sion') || stem.endsWith('tion'))) stem = stem.slice(0, -3);
  if (stem.length > 3 && stem.endsWith('e')) stem = stem.slice(0, -1);
  return stem.length > 2 && stem.endsWith('y') ? `${stem.slice(0, -1)}i` : stem;
}

function singular(term: string): string {
  if (!term.endsWith('s')) return term;
  if (term.endsWith('ies')) return term.length > 4 ? `${term.slice(0, -3)}y` : term.slice(0, -1);
  if (hissing.test(term)) return term.slice(0, -2);
  return /[^sui]s$/.test(term) ? term.slice(0, -1) : term;
}
