/** What the words of a prompt say about whether it needs the memory of a person. */
export interface PromptSigns {
  /** The number of signs that any model can answer without a memory: a translation, a joke, arithmetic, a small edit, thanks. */
  readonly needless: number;
  /** Whether it asks about the world in general: a question or a request to explain that mentions no person. */
  readonly general: boolean;
  /** Whether it mentions the person who types it, as in "my editor" and "which port do we use again". */
  readonly personal: boolean;
  /** Whether it gives an order, such as "deploy the fix" and "book a hotel". */
  readonly order: boolean;
}

const anyOf = (...parts: readonly string[]): string => `(?:${parts.join('|')})`;
const pattern = (...alternatives: readonly string[]): RegExp => new RegExp(anyOf(...alternatives), 'iu');
/** Parts of patterns match whole words. In a list, a space separates words, and an underscore is a space inside one of them. */
const words = (list: string): string =>
  String.raw`(?<![\p{L}\p{N}])${anyOf(
    ...list
      .trim()
      .split(/\s+/)
      .map((word) => word.replaceAll('_', ' ')),
  )}(?![\p{L}\p{N}])`;
const SHORT = String.raw`(?=.{0,40}$)`;

const LANGUAGES = words(`
  arabic chinese czech danish dutch english finnish french german greek hebrew hindi hungarian italian japanese korean latin norwegian
  polish portuguese russian spanish swedish turkish ukrainian
  arabische? chinesische? dänische? englische? französische? griechische? italienische? japanische? lateinische? niederländische?
  polnische? portugiesische? russische? schwedische? spanische? tschechische? türkische?`);

/** Replies to the agent's last answer, which only the conversation explains. */
const CONVERSATION = [
  `^${words('ok okay yes yep yeah no nope sure thanks thank_you great good perfect nice cool continue proceed go_on go_ahead keep_going')}${SHORT}`,
  `^${words('next stop cancel wait again once_more retry try do_it run_it ja nein danke weiter gut genau passt stopp? nochmal')}${SHORT}`,
  String.raw`\b(?:you|your) (?:last|just|previous|did|do|said|change|touch)`,
  `${words('shorten rephrase repeat revert undo roll_back rückgängig never_mind lgtm looks?_good looks?_great looks?_fine')}${SHORT}`,
  String.raw`\b(?:daraus|davon)\b|^(?:schreibe?|mache?|übersetze?|zeige?) (?:das|es|dies)\b`,
  String.raw`^(?:and )?(?:can you )?(?:now )?(?:show|make|put|do|give|write) (?:that|it|them) (?:as|in|back|shorter|longer|a)\b`,
  String.raw`^(?:explain|say|show me|tell me|do|try|run|erklär) (?:that|this|it|das)(?: again| once more|,? please| nochmal)*[.!]?$|^try an?(?:other| different)\b`,
  String.raw`^(?:as|in) an? (?:table|list|bullet)|^not? (?:that|the|this) |^a bit |\binstead$`,
];

/** Edits of the text in front of the agent. */
const PARTS_OF_CODE =
  `variable loop function method call line ifs? condition constant literal snippet imports? class callback while array
  list heading string return block parameters? boolean name test assertion number error trace stack_trace code sentence text
  paragraph word regex expression json yaml query file one`.split(/\s+/);
const EDIT = [
  // Such as "rename i to index" and "use const instead of let", without more words.
  String.raw`^(?:please )?(?:rename|change|replace|swap|use|turn|convert|make|set|put|ersetze|ändere|nenne) .{1,30} (?:to|with|by|into|instead of|and|durch|in) \S+(?: \S+)?$`,
  words('extra missing_closing trailing redundant duplicate return_value return_type unneeded überflüssigen? doppelten?'),
  String.raw`\blines? \d|\bzeilen? \d`,
  words(
    'typos? tippfehler leerzeile semicolons? commas? brackets? blank_lines? whitespace magic_number null_check try/catch ternary',
  ),
  words(
    'async/await named_constant lower_?case upper-?case capitalize lowercase uppercase bold italics? asterisks parentheses quotes',
  ),
  words(
    'quotation_marks newlines? backticks apostrophes? kleinbuchstaben großbuchstaben fett kursiv anführungszeichen klammern?',
  ),
  String.raw`\b(?:first|second|third|last|next|final) (?:word|character|letter|line|sentence|paragraph|item|element|argument|row)\b`,
  String.raw`\b(?:this|these|that|two) (?:new )?${anyOf(...PARTS_OF_CODE)}\b`,
  String.raw`\bthis (?:fail|wrong|broken)|\bwhat'?s wrong (?:with|here)|\b(?:diese[rsnm]?|die|der) (?:funktion|schleife|variable|klasse)\b`,
  String.raw`\bthe (?:variable|loop|condition|(?:function|variable|class|method) names?|return type|unused|arguments|parameters|literal)\b`,
  String.raw`\bthe (?:commented|heading|string|if|while|for|import|imports)\b`,
];

const VERBS_ON_TEXT =
  `fix correct sort reverse count rewrite rephrase reword uppercase lowercase capitalize format decode encode complete finish
  check remove replace rename summarize shorten split join convert order rank alphabetize korrigiere sortiere zähle`.split(/\s+/);
/** Work on a text that the prompt contains, and requests to say something. */
const LITERAL = [
  `^(?:please )?${anyOf(...VERBS_ON_TEXT)}\\b[^:]{0,80}(?::\\s*\\S|["'“„«][^"'”»]{1,80}["'”»])`,
  String.raw`\b(?:this|these|the following|diese[nmrs]?|folgende[nmrs]?)\b[^:]{0,40}:\s*\S`,
  String.raw`^(?:please )?(?:just )?(?:say|echo|sag)\b(?! to)|^(?:reply|respond|answer|antworte)(?: only| just| exactly)? (?:with|in|mit|["'“„])`,
  String.raw`\b(?:fix|correct) the (?:spelling|grammar|punctuation)\b|\bthe (?:words?|letters?|string|sentence|phrase) ["'“„]`,
  `^${words('hello hi hey hallo moin servus good_morning good_afternoon good_evening guten_tag guten_morgen guten_abend')}${SHORT}`,
];

const LANGUAGE = [
  words('translate translation_of synonyms? antonyms? opposite_of plural past_tense singular rhymes? reim spell etymology'),
  words('alphabet vowels proverb saying idiom acronym bedeutet meaning_of anagrams? another_word word_for short_for'),
  String.raw`\b${LANGUAGES} (?:word|wort|phrase|alphabet)|\bsentence (?:using|with|containing)\b|\bbackwards\b|\bstart(?:s|ing)? with (?:the letter )?\p{L}\b`,
  String.raw`übersetz|\b(?:in|into|auf|ins|to|from) ${LANGUAGES}`,
  String.raw`\bhow (?:do|does|would) (?:you|we|one|\p{L}+s) (?:say|write|spell|pronounce|call)\b|\b(?:one|just the|only the) word\b`,
  String.raw`\bwhat does (?:the |an? )?(?:(?:\p{L}+ )?(?:word|phrase|acronym|abbreviation) )?\S+ (?:mean|stand for)\b`,
];

const FUN = [
  words('jokes? witz witze riddles? rätsel puns? haikus? poems? gedicht limericks? sonnet ballad fairy_tale short_story märchen'),
  words(
    'tongue_twister trivia funny fun_name fun_fact make_me_laugh lorem_ipsum song_about story_about verse make_up invent heads_or_tails',
  ),
  String.raw`\b(?:roll|flip|toss) an? |\b(?:random|pick an?|think of an?) number`,
];

const ARITHMETIC = [
  String.raw`^(?:what'?s|what is|calculate|compute|solve|how much is|was ist|wie viel ist)?\s*[\d(][\d.,]*\s*(?:[*+/x×^-]|plus|minus|times|divided by|mal|geteilt)`,
  String.raw`\d ?(?:percent|prozent|%) (?:of|von)\b|\b(?:square|cube|quadrat)(?: root|wurzel)|\bconvert\b.*\b(?:to|into)\b|\b(?:formula|largest|divisor) (?:of|for)\b`,
  String.raw`\bhow many \p{L}+ (?:are |is )?(?:in|does|are there)\b|\bwie viele? \p{L}+ (?:hat|sind|ein)\b|\bwie rechnet\b`,
  words('differentiate integrate decode to_decimal to_binary to_hex primes? prime_numbers? odd_numbers even_numbers'),
  String.raw`\b(?:from )?(?:1|one) to (?:\d+|five|ten|twenty|a hundred)\b|\bprints? (?:hello|["'])`,
];

/** Exercises and terms of textbooks. */
const TEXTBOOK = [
  words(
    'quicksort bubble_sort merge_sort heap_sort binary_search palindromes? fibonacci factorial eratosthenes linked_list big_o fizzbuzz',
  ),
  words(
    'hello_world sorting_algorithms? mutex semaphore monad closure polymorphism recursion pointers? idempotent currying trie',
  ),
  String.raw`\bwrite an? (?:function|method|program|query|regex|sql query|class) (?:that|which|to|for)\b|\bregex (?:for|that)\b`,
  String.raw`\bregular expression\b|\bin (?:c|c\+\+|rust|python|java|kotlin|scala|haskell|javascript|go|assembly|swift|ruby)$`,
];

const NEEDLESS = [CONVERSATION, EDIT, LITERAL, LANGUAGE, FUN, ARITHMETIC, TEXTBOOK].map((alternatives) =>
  pattern(...alternatives),
);

/** Questions, and requests to explain. Those about the person's own things are left out by `PERSONAL`, or have facts near them. */
const GENERAL = pattern(
  `^(?:(?:so|and|hey|please),? )?${words(`
    what what's whats what're who who's whom whose when when's where where's why how how's which is are was were do does did can could
    explain define describe compare summarize summarise name list
    wer was wie wieso warum wann wo wohin woher welche welcher welches ist sind gibt nenne erkläre? erklär definiere vergleiche`)}`,
  String.raw`^(?:tell me (?:about|what|how|why|who)|difference between|give me (?:the first|the last|two|three|four|five|ten|\d+|an example))\b`,
  String.raw`\bin (?:one|two|three|a few|\d+|simple|plain|other) (?:words?|sentences?|terms)\b|\b(?:one|two|three)-(?:sentence|word|line)\b|\bsummary of\b|\bto a (?:beginner|child|five-year-old)\b`,
);

/** "How do I" asks about the world, and "tell me" asks for anything. */
const IMPERSONAL =
  /\b(?:how (?:do|can|could|would|should) i|(?:tell|give|show|explain to|erzähle?|erkläre?|nenne?|zeige?|teach|write|make|sing) (?:me|mir)|like i'm|to me)\b/giu;
const PERSONAL = pattern(
  words(`my mine our ours we us i'm i've i'd me mein meine[nmrs]? unser unsere[nmrs]? wir ich uns mir again wieder normally
  usual usually`),
  // The name of a variable is no person.
  String.raw`(?<![\p{L}\p{N}])i (?!to\b|in\b|is\b|as\b|and\b|or\b)\p{L}`,
);
const QUOTED = /["“„«`][^"”»`]*["”»`]/gu;

/** The beginning of an order for work. */
const ORDER = pattern(
  `^(?:(?:please|now|then|ok|okay|so|and|bitte|can you|could you|would you|will you|let's|lets|i want you to|kannst du|könntest du),? )*${words(`
    add adjust analyse analyze announce answer apply arrange ask backup bind block book bring build bump buy call cancel change charge check
    choose clean clear clone close commit compile configure connect copy count cover create cut debug delete deploy describe design develop
    disable display do document download draft draw drop edit email enable enter estimate expose export extend extract fetch file fill
    find fix format generate get give group handle help hide host implement import improve improvise include inform initialize insert install
    integrate investigate invite keep launch let lint list load log look mail make measure mention merge migrate mock mount move name notify
    open optimize order organise organize pack parse pay persist pick plan play plot point post prepare print process profile proofread
    propose provision publish pull push put query read rebase recommend record refactor register reindent release reload remind remove
    rename render reply report request reschedule reserve reset resize resolve restart restore review rewrite roll rotate run save scaffold
    scan schedule seed select send set set_up ship show sign simplify solve speed spin split stage start stop store style submit suggest
    summarise summarize switch sync tag take tell test tidy track train transfer translate try turn undo update upgrade upload use validate
    verify visualise visualize wire work wrap write
    aktualisiere antworte baue beantworte bestelle buche erinnere erstelle erzeuge finde formuliere füge fülle installiere lade lege lies
    lösche mach mache öffne plane prüfe räume richte rufe schicke? schreibe? setze sende starte stelle suche teste trage verbinde
    veröffentliche verschiebe vereinbare zeige? übersetze`)}`,
);

const MAX_NEEDLESS = 2;

/** Reads what the words of a prompt say about it. Knows English and German; a prompt in another language has no signs. */
export function signsOf(prompt: string): PromptSigns {
  const personal = PERSONAL.test(prompt.replaceAll(QUOTED, '').replaceAll(IMPERSONAL, ''));
  const needless = NEEDLESS.filter((signs) => signs.test(prompt)).length;
  return {
    needless: Math.min(MAX_NEEDLESS, needless),
    general: !personal && GENERAL.test(prompt),
    personal,
    order: ORDER.test(prompt),
  };
}
