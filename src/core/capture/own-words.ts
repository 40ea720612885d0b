/** A text of the person, in which code and quotations are replaced by placeholders, so that no rule reads them as statements. */
export interface OwnWords {
  readonly sentences: readonly string[];
  /** Writes the code and the short quotations of a sentence again. */
  readonly restore: (sentence: string) => string;
}

/** A longer quotation is somebody else's text. */
const QUOTED_WORDS = 3;
/** The first private-use character. Each placeholder is one such character. */
const PLACEHOLDER = 0xe000;
const PLACEHOLDERS = 200;

/**
 * Returns the sentences that the person wrote. Leaves out what others or programs wrote: the context of hooks, expanded commands, code,
 * logs, output, mails, and quotations. If in doubt, a paragraph is left out.
 */
export function ownWordsOf(prompt: string): OwnWords {
  const parts: string[] = [];
  const replaced = withoutBlocks(prompt.replaceAll(/[\ue000-\uf8ff]/g, ' ')).replaceAll(SPANS, (span) => {
    const inner = span.slice(1, -1).trim();
    // The placeholder of a long span ends the sentence as a foreign text.
    if (parts.length >= PLACEHOLDERS || inner.split(/\s+/).length > QUOTED_WORDS) return FOREIGN;
    parts.push(span);
    return String.fromCharCode(PLACEHOLDER + parts.length);
  });
  const all = paragraphsOf(replaced).flatMap(sentencesOf);
  const order = all.findIndex((sentence) => ABOUT_TEXT.test(sentence));
  const sentences = order === -1 ? all : all.slice(0, order);
  return {
    sentences: sentences.filter((sentence) => !sentence.includes(FOREIGN)),
    restore: (sentence) => sentence.replaceAll(/[\ue001-\uf8fe]/g, (sign) => parts[sign.charCodeAt(0) - PLACEHOLDER - 1] ?? ''),
  };
}

/** Stands for a text that is not the person's. A sentence with it is left out. */
const FOREIGN = '\uf8ff';

/** Code in a line, and quotations. An apostrophe is no quotation mark. */
const SPANS =
  /`[^`\n]{1,400}`|"[^"\n]{1,600}"|“[^”\n]{1,600}”|„[^“”\n]{1,600}[“”]|«[^»\n]{1,600}»|»[^«\n]{1,600}«|‘[^’\n]{1,600}’(?!\p{L})|(?<![\p{L}\p{N}])'[^'\n]{3,600}'(?![\p{L}\p{N}])/gu;

/** Removes blocks that a program or a client put into the prompt. A block that is not closed reaches to the end. */
const withoutBlocks = (prompt: string): string =>
  prompt
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(/(?:^|\n)[ \t]*(`{3,}|~{3,})[^\n]*(?:\n[\s\S]*?(?:\n[ \t]*\1[ \t]*(?=\n|$)|$)|$)/g, '\n\n')
    .replaceAll(/<([a-z][\w:-]{0,40})(?:\s[^<>]{0,200})?>[\s\S]*?(?:<\/\1\s*>|$)/gi, '\n\n');

/** The beginning of a mail, a forwarded message or a letter. All that follows is pasted. */
const PASTED =
  /^(?:(?:from|von|de|subject|betreff|to|an|cc|date|datum|sent|gesendet):\s|-{2,}\s*(?:forwarded|original|weitergeleitet|ursprüngliche)|on .{4,60} wrote:|am .{4,60} schrieb|(?:dear|hi|hello|hallo|liebe[rs]?|sehr geehrte[rs]?|guten tag)\b[^.!?\n]{0,40},\s*$)/im;

/** A line that ends with a colon introduces what was pasted below it. */
const INTRODUCTION = /[^\n]:[ \t]*\n[\s\S]*$/;

function paragraphsOf(text: string): string[] {
  const mail = PASTED.exec(text);
  const own = (mail ? text.slice(0, mail.index) : text).replace(INTRODUCTION, (pasted) => pasted.slice(0, pasted.indexOf('\n')));
  return own
    .split(/\n[ \t]*\n/)
    .filter((paragraph) => !paragraph.split('\n').some(isMachineLine))
    .map((paragraph) =>
      paragraph
        .split('\n')
        .filter((line) => !/^\s*(?:>|[-*•]\s|\d{1,2}[.)]\s|#)/.test(line))
        .join('\n'),
    );
}

/** An order to work on a text. The text probably follows. */
const ABOUT_TEXT =
  /^(?:(?:can|could|would) you |(?:now|then|and|so|jetzt|dann|und),? |please |bitte )*(?:summari[sz]e|translate|shorten|proofread|rephrase|reword|rewrite|paraphrase|polish|spell-?check|tl;?dr|fasse?|übersetze|kürze|formuliere|lektoriere)(?!\p{L})/iu;

/** Lines of logs, output, stack traces, differences, chats and code. */
const MACHINE_LINES: readonly RegExp[] = [
  /^\s*[[(]?\d{1,4}[-:/.]\d{1,2}(?:[-:/.]\d{1,4})?[\])T ]/,
  /^\s*(?:npm|pnpm|yarn|warning|warn|error|info|debug|fatal|remote|traceback|exception|pass|fail|failed|hint)\b[ \t]*(?:\[[^\]]*\])?:(?!\s*(?:the|we|our|i|my|all)\b)/i,
  /^\s*npm (?:warn|err|error|notice)\b/i,
  /^\s*(?:PASS|FAIL|INFO|WARN|ERROR|DEBUG|FATAL)\b/,
  /^\s*\w{0,40}(?:Error|Exception|Warning):/,
  /^\s*at .{1,200}[(:]\S{0,200}:\d+/,
  /^\s*File ".{1,200}", line \d/,
  /^\s*Traceback \(/,
  /^\s*[$%❯➜]\s\S/,
  /^\s*(?:diff --git|index [\da-f]{6,}|@@ |[+-]{3} |[+-](?=[\p{L}<{}[\]#/]))/u,
  /^\s*[●✓✗✖×✔⨯▲!]\s/,
  /^[^\s:]{1,120}:\d+(?::\d+)?[:\s]/,
  /^\s*(?:const|let|var|function|class|import|export|def|return|public|private|async|await|SELECT|INSERT|UPDATE|CREATE|FROM|WHERE|package|using|#include|if ?\(|for ?\(|while ?\()[\s(].*[;{}()=:]/,
  /[;{}]\s*$|=>|\)\s*\{|^\s*(?:\/\/|\/\*|\*\/|--\s)/,
  /^ {4,}\S|^\t+\S|^\s*\|.*\|\s*$/,
  /^\s*(?:PID|USER|NAME|top -|total)\s+\S/,
];

const isMachineLine = (line: string): boolean => MACHINE_LINES.some((pattern) => pattern.test(line));

/** Abbreviations whose full stop does not end a sentence. */
const ABBREVIATION =
  /(?:(?<!\p{L})(?:e\.g|i\.e|z\.\s?b|d\.\s?h|u\.\s?a|etc|vs|resp|ca|bzw|nr|mr|mrs|ms|dr|prof|inc|ltd|corp|approx))\.$|(?<!\p{L})[zdu]\.$/iu;

/** A long line without an end is continued on the next line. Tried once for each line, so that the work grows linearly. */
const WRAPPED = /^([^\n]{60,}[^\n.!?:])\n(?=\S)/gm;

/** Splits a paragraph at the ends of its sentences. A point within a number, a name or an address does not end a sentence. */
function sentencesOf(paragraph: string): string[] {
  const sentences: string[] = [];
  let begun = '';
  for (const piece of paragraph.replaceAll(WRAPPED, '$1 ').split(/(?<=[.!?…]["”’)]?)\s+|\n+/u)) {
    begun = begun === '' ? piece : `${begun} ${piece}`;
    if (ABBREVIATION.test(begun)) continue;
    sentences.push(begun.trim());
    begun = '';
  }
  sentences.push(begun.trim());
  return sentences.filter((sentence) => sentence !== '');
}
