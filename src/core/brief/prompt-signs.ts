/** What the words of a prompt say about whether it needs the memory of a person. */
export interface PromptSigns {
  /** The number of signs that any model can answer without a memory: a translation, a joke, arithmetic, a small edit, thanks. */
  readonly needless: number;
  /** Whether it asks about the world in general: a question or an explanation that mentions nobody. */
  readonly general: boolean;
  /** Whether it mentions the person who types it, as in "my editor" and "which port do we use again". */
  readonly personal: boolean;
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
  `${words('shorten rephrase repeat revert undo roll_back rückgängig')}${SHORT}`,
  String.raw`^(?:and )?(?:can you )?(?:now )?(?:show|make|put|do|give|write) (?:that|it|them) (?:as|in|back|shorter|longer|a)\b`,
  String.raw`^(?:as|in) an? (?:table|list|bullet)|^not? (?:that|the|this) |^a bit |\binstead$`,
];

/** Edits of the text in front of the agent. */
const PARTS_OF_CODE =
  `variable loop function method call line ifs? condition constant literal snippet imports? class callback while array
  list heading string return return_type parameters? boolean name test assertion number error trace stack_trace code sentence text
  paragraph word regex expression json yaml query file one`.split(/\s+/);
const EDIT = [
  String.raw`\blines? \d|\bzeilen? \d`,
  words(
    'typos? tippfehler leerzeile semicolons? commas? brackets? blank_lines? whitespace magic_number null_check try/catch ternary',
  ),
  words('async/await named_constant lower_?case upper_?case capitalize lowercase uppercase'),
  String.raw`\b(?:this|these|that|two) (?:new )?${anyOf(...PARTS_OF_CODE)}\b`,
  String.raw`\bthis (?:fail|wrong|broken)|\bwhat'?s wrong (?:with|here)|\b(?:diese[rsnm]?|die|der) (?:funktion|schleife|variable|klasse)\b`,
  String.raw`\bthe (?:variable|loop|condition|(?:function|variable|class|method) names?|return type|unused|arguments|parameters|literal)\b`,
  String.raw`\bthe (?:commented|heading|string|if|while|for|import|imports)\b`,
];

const LANGUAGE = [
  words('translate translation_of synonyms? antonyms? opposite_of plural past_tense singular rhymes? reim spell etymology'),
  words('alphabet vowels proverb saying idiom acronym bedeutet meaning_of'),
  String.raw`übersetz|\b(?:in|into|auf|ins|to|from) ${LANGUAGES}`,
  String.raw`\bhow (?:do|does|would) (?:you|we|one|\p{L}+s) (?:say|write|spell|pronounce|call)\b|\b(?:one|just the|only the) word\b`,
  String.raw`\bwhat does (?:the |an? )?(?:(?:\p{L}+ )?(?:word|phrase|acronym|abbreviation) )?\S+ (?:mean|stand for)\b`,
];

const FUN = [
  words('jokes? witz witze riddles? rätsel puns? haikus? poems? gedicht limericks? sonnet ballad fairy_tale short_story märchen'),
  words('tongue_twister trivia fun_fact make_me_laugh lorem_ipsum song_about story_about verse make_up invent heads_or_tails'),
  String.raw`\b(?:roll|flip|toss) an? |\b(?:random|pick an?|think of an?) number`,
];

const ARITHMETIC = [
  String.raw`^(?:what'?s|what is|calculate|compute|solve|how much is|was ist|wie viel ist)?\s*[\d(][\d.,]*\s*(?:[*+/x×^-]|plus|minus|times|divided by|mal|geteilt)`,
  String.raw`\d ?(?:percent|prozent|%) (?:of|von)\b|\b(?:square|cube|quadrat)(?: root|wurzel)|\bconvert\b.*\b(?:to|into)\b|\b(?:formula|largest|divisor) (?:of|for)\b`,
  String.raw`\bhow many \p{L}+ (?:are |is )?(?:in|does|are there)\b|\bwie viele? \p{L}+ (?:hat|sind|ein)\b|\bwie rechnet\b`,
  words('differentiate integrate decode to_decimal to_binary to_hex'),
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

const NEEDLESS = [CONVERSATION, EDIT, LANGUAGE, FUN, ARITHMETIC, TEXTBOOK].map((alternatives) => pattern(...alternatives));

const GENERAL = pattern(
  String.raw`^(?:so )?(?:what(?:'?s| is| are| was| were| does| do| did| makes| causes| happens| comes| year| kind of)|who(?:'?s| is| was| were)?)\b`,
  String.raw`^(?:when (?:was|were|did|is|does)|why (?:is|are|do|does|did|was)|which|is|are|does|do|can|compare)\b`,
  String.raw`^how (?:do|does|did|is|are|can|could|to|tall|deep|fast|far|long|old|big|high|much|many|heavy)\b`,
  String.raw`^(?:was (?:ist|sind|bedeutet)|wer|wie|warum|wann|wo|nenne|erkläre?|explain|define|describe (?:the|how)|summarize the)\b`,
  String.raw`^(?:tell me (?:about|what|how)|difference between|name (?:the|a|some|two|three|four|five|ten)|list (?:the|some|three|five|ten))\b`,
  String.raw`^give me (?:two|three|four|five|ten|an example)\b`,
);

/** "How do I" asks about the world, and "tell me" asks for anything. */
const IMPERSONAL = /\b(?:how (?:do|can|could|would|should) i|(?:tell|give|show|explain to|erzähl|nenn|zeig) (?:me|mir))\b/giu;
const PERSONAL = pattern(
  words(`my mine our ours we us i i'm i've i'd me mein meine[nmrs]? unser unsere[nmrs]? wir ich uns mir again wieder normally
  usual usually`),
);

const MAX_NEEDLESS = 2;

/** Reads what the words of a prompt say about it. Knows English and German; a prompt in another language has no signs. */
export function signsOf(prompt: string): PromptSigns {
  const personal = PERSONAL.test(prompt.replaceAll(IMPERSONAL, ''));
  const needless = NEEDLESS.filter((signs) => signs.test(prompt)).length;
  return { needless: Math.min(MAX_NEEDLESS, needless), general: !personal && GENERAL.test(prompt), personal };
}
