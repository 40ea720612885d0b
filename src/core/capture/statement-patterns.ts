/** What a statement is about. It decides the category of the proposed fact. */
export type StatementKind = 'convention' | 'preference' | 'decision' | 'person' | 'project' | 'remember';

interface StatementPattern {
  readonly kind: StatementKind;
  readonly pattern: RegExp;
  /** Replaces the match, so that the value can be understood alone. If absent, the sentence stays as it was said. */
  readonly replacement?: string;
  /** True if no word says that the statement lasts. Then no word may say that it is about a passing state. */
  readonly implicit?: true;
}

const rule = (kind: StatementKind, source: string, replacement?: string): StatementPattern => ({
  kind,
  pattern: new RegExp(source, 'iu'),
  ...(replacement !== undefined && { replacement }),
});

const implicit = (kind: StatementKind, source: string): StatementPattern => ({ ...rule(kind, source), implicit: true });

const remember =
  "(?:do ?n[o'’]?t forget|remember|keep in mind|bear in mind|note|make a note|take a note|be aware|please know|keep (?:it|this) in mind)";
const later = '(?: (?:for|from) (?:later|the future|next time|now on))?';
const fromNowOn =
  '(?:from now on|from here on(?: out)?|going forward|moving forward|in (?:the )?future|henceforth|as of (?:now|today)|starting (?:now|today)|from today(?: on)?|now and forever|for good|at all times|until further notice)';
const abJetzt = '(?:ab (?:jetzt|sofort|heute)|von (?:jetzt|nun|heute) an|künftig|zukünftig|in zukunft|bis auf weiteres)';
const adverbs =
  '(?:also |only |just |mostly |mainly |all |both |usually |normally |generally |typically |strictly |deliberately |exclusively |currently )*';
const np = String.raw`(?:[\p{L}\p{N}'’./+#&@_\ue001-\uf8fe-]+ ){1,6}?`;
/** Verbs of lasting states, in the third person and the plural. */
const states =
  '(?:is|are|runs?|lives?|lies?|sits?|uses?|has|have|goes|go|pays?|starts?|begins?|ends?|opens?|closes?|targets?|follows?|expects?|speaks?|listens?|includes?|excludes?|accepts?|sends?|returns?|belongs?|requires?|supports?|contains?|consists?|comes?|treats?|calls?|ships?|deploys?|sells?|meets?|works?|takes place|talks?|writes?|reads?|keeps?|stores?|means?|stands for|depends?|relies|rely|allows?|forbids?|handles?|prefers?|owns?|manages?|maintains?|happens?)';
const kept =
  '(?:stored|kept|hosted|managed|tracked|generated|documented|defined|built|deployed|versioned|maintained|published|written|named|called|licensed|configured|located|formatted|returned|signed|reset|rotated|reviewed|spelled|spelt|served|processed|billed|paid|shipped|backed up|archived|encrypted|handled|made|done|owned|run|forbidden|allowed|required|not allowed)';
const thing =
  '(?:projects?|repo|repository|code ?base|monorepo|products?|library|company|office|(?:main |default |release )?branch|production(?: [\\p{L}-]+)?|prod|staging(?: [\\p{L}-]+)?|(?:test|dev|legacy|customer|client|public|internal|base|legal|main|primary) [\\p{L}-]+|ci|pipeline|build server|shop|customers?|clients?|docs|documentation|wiki|handbook|brand|team|standup|stand-up|retro|newsletter|mailbox|vpn|registry)';
const family =
  '(?:wife|husband|partner|girlfriend|boyfriend|daughter|son|kids?|children|mother|father|mum|mom|dad|parents?|brother|sister|dog|cat|family|colleague|co-worker|coworker|assistant|landlord|neighbou?r|accountant|lawyer|grandmother|grandfather)';
const herself =
  '(?:(?:full |first |last |family |middle )?name|nickname|pronouns|(?:work |private |business )?e-?mail(?: address)?|phone(?: number)?|birthday|manager|boss|team lead|team|company|employer|role|job(?: title)?|profession|time ?zone|address|home ?town|city|country|native language|mother tongue|first language|editor|ide|shell|terminal|operating system|os|machine|laptop|computer|keyboard(?: layout)?|browser|(?:github|gitlab|slack|git) (?:user ?name|handle|name|account)|user ?name|handle|working hours|office hours|working days|tech stack|stack|doctor|diet|font|colou?r scheme|theme|(?:favou?rite|preferred|default|usual|go-to) [\\p{L} ]{2,40})';
/** Orders that name a time or a rule for something that they ask to make. */
const make =
  '(?:create|make|set|write|add|run|build|schedule|generate|send|give|show|find|put|implement|configure|start|let|please|tell|ask|draft|plan|design|propose|suggest|explain|list|check|use|erstelle|schreibe?|baue?|mache?|plane?|lege?|füge|zeige?|sage?)';
/** Times that repeat. */
const regularly =
  '(?:every \\d+ (?:days|weeks|months|hours|minutes|years)|once a (?:day|week|month|year|quarter)|(?:jede[nrs]?|alle) (?:[\\p{L}\\d]+ )?(?:tage?|nacht|morgen|abend|wochen?|monate?|jahre?|quartal|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)|täglich|wöchentlich|monatlich|jährlich|(?:mon|diens|donners|frei|sams|sonn)tags|mittwochs|nachts|every (?:day|night|morning|evening|weekday|week|month|year|quarter|sprint|two weeks|other week|monday|tuesday|wednesday|thursday|friday|saturday|sunday|first|second|last)|each (?:day|night|morning|week|month|year|quarter|sprint|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|daily|weekly|nightly|on (?:mondays|tuesdays|wednesdays|thursdays|fridays|saturdays|sundays|weekdays|weekends))';
/** Orders that tell how to work, and not what to do now. */
const manner =
  "(?:use|write|answer|respond|reply|prefer|avoid|keep|name|format|indent|speak|talk|follow|stick to|respect|treat|explain|include|do ?n[o'’]?t|do not|no|address|ask|check|run|test|put|give|make sure|ensure|be|commit|sign|sort|spell|stay|start|end|document|comment|cite|quote|measure|round)";
const everywhere =
  '(?:everywhere|in everything|for everything|in all|for all|in every|for every|on every|on all|with every|to every|to all|for each|in each|in any|for any|each time|every time|throughout|on principle|in general|generally|by default|as a rule|without exception|whenever|under no circumstances|in (?:this|our|the whole|the entire) (?:repo|repository|project|code ?base|company|team)|across the (?:repo|project|code ?base|board))';
const weDont =
  "(?:are|were|was|have|had|has|need|want|got|get|should|could|can|cannot|can['’]t|must|may|might|will|would|do|did|don['’]t|didn['’]t|see|saw|think|thought|believe|hope|guess|know|knew|found|find|tried|try|now|already|still|really|agree|went|made|took|said|told|came|ran|left|sent|forgot|met|lost|broke|wrote|is|then|first|finally|recently|look|expect|wait|assume|suggest|propose|wonder|plan|hit|face|experience|lack|miss|appreciate|thank|spoke|heard|received|never|always|built|bought|sold|decided|[\\p{L}]+ed|[\\p{L}]+ing)";
const pronoun =
  '(?:it|that|this|these|those|them|him|her|some|something|another|one|the (?:same|following|first|second|third|last|latest|other|new one|old one|former|latter|left|right|top|bottom))';
const wirNicht =
  '(?:nehmen|haben|hatten|müssen|mussten|sollten|sollen|können|konnten|könnten|brauchen|bräuchten|wollen|wollten|sind|waren|wurden|werden|würden|bekommen|sehen|finden|fanden|denken|glauben|hoffen|wissen|machen|gehen|kommen|treffen|suchen|versuchen|dürfen|reden|sprechen|merken|stehen|hängen)';
const nimm =
  '(?:nutze?|verwende|benutze?|schreibe?|antworte|nenne?|duze?|sieze?|sprich|nimm|prüfe?|frage?|erkläre?|halte?|formatiere|kommentiere|(?:gib|zeige?|mache?|stelle?|lege?) mir|teste?|committe|pushe|deploye|sage?|vermeide|achte|übersetze|arbeite|rede|behandle|runde|sortiere|benenne|dokumentiere|zitiere)';
const immer = '(?:immer|nie|niemals|grundsätzlich|generell|stets|überall|ausnahmslos|prinzipiell|jedes mal|nie wieder)';

/**
 * Sentences that sound lasting. The first pattern that matches decides. They are tried after a sentence lost its lead-in ("ok, and
 * please"), and only if nothing in it says that it is a question, a supposition or for this once.
 */
export const STATEMENTS: readonly StatementPattern[] = [
  // The person asks to remember.
  rule('remember', String.raw`^(?:please |also )*${remember}${later}(?:,? that |: ?|, )(?=\S)`, ''),
  rule(
    'remember',
    String.raw`^(?:please |also )*${remember}${later} (?=(?:we|i|i['’]m|our|my|all|every|there|never|always|no)\b)`,
    '',
  ),
  rule(
    'remember',
    String.raw`^(?:(?:just )?(?:for|to) (?:future|your|the) (?:reference|information|record)|note for (?:the future|later)|note to self|fyi|just so you know|good to know|important|heads[- ]up|quick heads[- ]up|reminder|quick note|as a note)[,:]? (?:that )?(?=\S)`,
    '',
  ),
  rule(
    'remember',
    String.raw`^(?:i should (?:mention|add|say)|you should know|i forgot to (?:mention|say))[,:]? (?:that )?(?=\S)`,
    '',
  ),
  rule('remember', String.raw`^(?:bitte )?(?:merke?|notiere?|schreib) dir(?: bitte| mal)*[:,]? dass (?=\S)`, 'Es gilt, dass '),
  rule('remember', String.raw`^(?:bitte )?(?:merke?|notiere?|schreib) dir(?: bitte| mal)*(?: auf)?[:,] ?(?=\S)`, ''),
  rule(
    'remember',
    String.raw`^(?:bitte )?(?:denke? (?:immer |bitte )*daran|beachte|bedenke|vergiss (?:bitte )?nicht|zur info|behalte im kopf|du solltest wissen)[:,]? dass (?=\S)`,
    'Es gilt, dass ',
  ),
  rule(
    'remember',
    String.raw`^(?:bitte )?(?:merken|merke|notieren|zur (?:info|erinnerung|kenntnis)|nur zur info|für die zukunft|für später|wichtig|hinweis|info|gut zu wissen|kleiner hinweis)[,:] ?(?=\S)`,
    '',
  ),
  rule('convention', String.raw`^${fromNowOn}[,:]? (?=\S)`, ''),
  rule('convention', String.raw`[,;]? (?:please )?${fromNowOn}(?=[.!]?$|[,;] | (?:please|and|use|when|for|in|on|i|we)\b)`, ''),
  rule('convention', String.raw`(?:^| )${abJetzt}(?!\p{L})`),

  // Decisions
  rule(
    'decision',
    String.raw`\b(?:we|the team|our team|management|the board|the client|the customer)(?:['’]ve| have| has)? (?:also |now |just |all |finally |already |recently |jointly )?(?:decided|agreed|settled|chose|chosen|opted|concluded|committed|voted|adopted|banned|abandoned|standardi[sz]ed|introduced|deprecated|dropped|picked|retired|replaced)\b(?! (?:to (?:meet|go|wait|postpone|cancel|skip|leave|try|talk|have|take|come)|yet|whether|if|earlier|it|that one|this one)\b)(?=: | )`,
  ),
  rule('decision', String.raw`^as (?:we )?(?:agreed|decided|discussed)[^,.!]{0,40}, (?=(?:the|our|we|all|every|no)\b)`, ''),
  rule(
    'preference',
    String.raw`^i(?:['’]ve| have)? (?:decided to (?:go (?!home|to|with|back|there|on)|become|be|stop|quit|give up|switch|move|learn|only|never|always)|given up|gave up|quit (?!the|this)|become|stopped (?:eating|drinking|using|smoking))\b`,
  ),
  rule('decision', String.raw`^(?:it (?:was|has been|is)|it['’]s) (?:been )?(?:decided|agreed|settled)\b`),
  rule(
    'decision',
    String.raw`^(?:(?:\S+ ){0,6})?we(?:['’]re| are|['’]ll| will)? (?:now |all )?(?:going with|go with|went with|gone with|sticking with|staying with|stay with|standardi[sz]ing on|moving (?:everything |all \S+ )?to|migrating to|switching to|dropping)\b(?! ${pronoun}\b)`,
  ),
  rule(
    'decision',
    String.raw`^(?:(?:\S+ ){0,4})?(?:we|i)(?:['’]ve| have)? (?:recently |just |now |finally |completely )?(?:switched|migrated|upgraded|changed|moved) (?:away |over |all \S+ |everything )?(?:from|to) (?!the (?:branch|file|line|next|other|bottom|top)|this|that|it\b|(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|next|tomorrow|\d)\b)`,
  ),
  rule(
    'decision',
    String.raw`^we (?:will not|won['’]t|will only|will never|will always|no longer|stopped|are not going to|aren['’]t going to)\b(?! (?:see|be|have|get|know|find|make it)\b)`,
  ),
  rule('decision', String.raw`^(?:the|our) (?:final )?(?:decision|agreement|plan of record) (?:is|was)\b`),
  rule(
    'decision',
    String.raw`^(?:wir|das team|die geschäftsführung|der vorstand) (?:haben|hat) (?:uns |sich )?(?:\S+ ){0,14}?(?:entschieden|geeinigt|beschlossen|vereinbart|festgelegt|abgeschafft|eingeführt|ausgetauscht|abgelöst)\b`,
  ),
  rule('decision', String.raw`^es (?:wurde|ist) (?:\S+ ){0,8}?(?:entschieden|beschlossen|vereinbart|festgelegt|abgemacht)\b`),
  rule(
    'decision',
    String.raw`^(?:wir|ich) (?:sind|bin|steigen|stellen|wechseln) (?:\S+ ){0,10}?(?:umgestiegen|gewechselt|umgezogen|um|auf \S+)(?=[.!,]|$)`,
  ),

  // Preferences
  rule(
    'preference',
    String.raw`^(?:i (?:want|need|expect|would like|['’]d like) you to|i['’]d like you to|it would be (?:great|nice|good|helpful) if you(?: could| would)?|i(?:['’]d| would) (?:appreciate|love|like|prefer) it if you(?: could| would)?|i (?:want|need|expect) that you) (?=(?:always|never|only|generally|usually)\b)`,
    '',
  ),
  rule(
    'preference',
    String.raw`^i (?:really |generally |usually |normally |mostly |much |strongly |still |also |always |definitely |personally )*(?:prefer|favou?r|dislike|hate|love|like|enjoy|can['’]t stand|cannot stand|(?:do not|don['’]t) (?:like|want|care for))\b(?! (?:${pronoun}|how|what|where|not\b|to (?:say|talk|wait|stay|leave|do|discuss|keep|use (?:it|this|that))|the (?:idea|way|look|result|change)|your|to (?:know|see|add|have|be|get|start|fix|go|thank)|a (?:look|button|function|list))\b)`,
  ),
  rule('preference', String.raw`^i(?:['’]d| would) (?:rather|prefer)\b(?! (?:${pronoun}|you\b))`),
  rule(
    'preference',
    String.raw`^(?:in general|generally|as a(?: general)? rule|by default|normally|usually|on principle|in principle|ideally|personally)[,:]? (?=(?:i|we|use|no|all|never|always|do|don['’]t|please|keep|write|prefer|avoid|stick|name|answer)\b)`,
    '',
  ),
  rule('preference', String.raw`^i want (?!to\b|a\b|an\b|the\b|you\b|this\b|that\b|it\b)[^.!]{3,80}, (?:never|not|no)\b`),
  rule(
    'preference',
    String.raw`^ich (?:möchte|will|wünsche mir|erwarte), dass (?:du|sie|ihr) [^.!]{0,120}(?<!\p{L})${immer}(?!\p{L})`,
  ),
  rule(
    'preference',
    String.raw`^ich (?:bevorzuge|mag|hasse|liebe|schätze|(?:möchte|will|hätte gern|hätte gerne) (?:\S+ ){0,3}?(?:immer|nie|grundsätzlich|generell))\b(?! (?:es|das|dies|diese|diesen|dich|deine|dein)\b)`,
  ),
  rule('preference', String.raw`^(?:grundsätzlich|generell|in der regel|standardmäßig|prinzipiell|normalerweise)[,:]? (?=\S)`),
  rule('person', String.raw`^(?:please )?(?:call|address) me (?!back|later|when|if|at\b)`),
  rule('person', String.raw`^(?:bitte )?(?:nenne?|duze?|sieze?) mich\b|^sprich mich\b`),

  // Rules
  rule(
    'convention',
    String.raw`^(?:never ever|always|never|do ?n[o'’]?t ever|do not ever|under no circumstances)\b(?!-| (?:gonna|got|seen|had|been|heard|mind|say never|again|thought|knew|saw|wanted|loved|liked|the|a|an|this|that|these|those|my|your|me|you|i|happens|fails|breaks|works|crashes|good|nice|happy|more|so|too|there|in|on|at)\b)`,
  ),
  rule(
    'convention',
    String.raw`^(?:you|one|everyone|everybody|agents?|people|developers?|nobody|no one) (?:should|must|have to|need to|needs to|has to|can|may|are to|is allowed to|are allowed to)(?: not)? (?:always|never|only|ever)\b`,
  ),
  rule(
    'convention',
    String.raw`^(?:you|nobody|no one|one) (?:must not|mustn['’]t|may not|may never|must never|may)\b(?! (?:be|have|want|need|see|know|find|notice)\b)`,
  ),
  rule(
    'convention',
    String.raw`^only [^.!]{2,60}? (?:may|can|is allowed|are allowed|should|must|merges?|deploys?|approves?|signs?)\b`,
  ),
  rule(
    'convention',
    String.raw`^(?:we|i) (?:always|never|only ever)\b (?!got|had|saw|heard|received|were|was|did|fixed|managed|thought|knew|wanted|understand|know|get|forget|[\p{L}]+ed\b)`,
  ),
  rule(
    'convention',
    String.raw`^(?!(?:i|you|he|she|it|they|the|a|an|that|this|these|those|we|tell|ask|${make.slice(3, -1)})\b)${np}(?:should|must|have to|need to|needs to|has to|may|can|are|is)(?: not)? (?:always|never|only ever)\b(?! (?:the same|broken|failing|red|late|slow))`,
  ),
  rule('convention', String.raw`^(?:please )?do(?: not|n['’]t) [^.!]{3,120}[, ]ever[.!]?$`),
  rule(
    'convention',
    String.raw`^(?:please )?do(?: not|n['’]t) (?:ever )?(?:suggest|recommend|propose|offer)\b(?! (?:it|that|this|anything|changes)\b)`,
  ),
  rule(
    'convention',
    String.raw`^(?:please )?stop (?:using|adding|writing|apologi[sz]ing|putting|creating|generating|summari[sz]ing|explaining|inserting|repeating|suggesting|calling|asking|saying|starting|ending)\b`,
  ),
  rule(
    'convention',
    String.raw`^(?:please )?(?:whenever|every time|each time|any ?time|when(?:ever)? i (?:say|write|ask|type|mention)) [^.!]{3,160}?, (?!(?:the|it|this|that|my|nothing|everything|i|he|she|they|a|an|all|there|some)\b)\S`,
  ),
  rule('convention', String.raw`^(?:when|before|after) (?:you|we)\b[^.!]{3,120}, (?:always|never)\b`),
  rule('convention', String.raw`^(?:for|in|with|on) (?:all|every|everything|any|each|our) [^,.!]{2,60}, (?:please )?${manner}\b`),
  rule(
    'convention',
    String.raw`^(?:please )?(?:answer|respond|reply)(?: to me)? (?:without|in (?:german|english|french|spanish|italian|polish|dutch|portuguese|simple|plain|full|complete)|as briefly|briefly|concisely)\b(?![^.!]*:)`,
  ),
  rule('convention', String.raw`^(?:please )?(?:talk|speak|explain \S+|write) to me (?:like|as|in)\b`),
  implicit(
    'convention',
    String.raw`^(?!(?:the|this|that|my|your|you|it|its|i)\b)(?:[\p{L}-]+ ){0,2}[\p{L}-]+s (?:always|never) (?!pass|fail|work|crash|break|return|match|reach|load|run\b|seem|happen|die|lie)\p{L}`,
  ),
  rule('convention', String.raw`^(?:please )?${manner} [^.!]{2,140}?\b${everywhere}\b`),
  rule('convention', String.raw`^use [^.!]{2,40}? here\b[^.!]{0,40}\b(?:not|never|instead of)\b`),
  rule(
    'convention',
    String.raw`^(?:use|prefer|write|keep|put|name|store|format|run|deploy|commit|push|log|test|answer) [^.!]{2,80}, never\b`,
  ),
  implicit('convention', String.raw`^(?:all|every)\b[^.!]{0,40}\bour\b[^.!]{0,60}? (?:is|are|has|have)\b`),
  implicit(
    'convention',
    String.raw`^in (?:this|our) (?:project|repo|repository|code ?base|team|company|app|house|family),? (?:all|every|each|no|we|the|our|any|never|always|nobody)\b`,
  ),
  implicit(
    'project',
    String.raw`^(?:every|each) (?:day|morning|evening|week|month|quarter|year|sprint|\p{L}+day),? (?:we|i) (?!${weDont}\b)\p{L}+`,
  ),
  implicit(
    'project',
    String.raw`^(?:the|our) (?:[\p{L}\p{N}-]+ ){1,4}?\p{L}+s (?:to |with |from |in )?[^.!,]{0,40}\bonly (?:through|via|from|by|with)\b`,
  ),
  implicit(
    'convention',
    String.raw`^(?:all|every|any) (?!time\b|in all\b|the best|good\b|right\b|set\b|done\b|clear\b|i\b|we need|two\b|three\b|four\b|\d|second\b|other\b|of the|case\b|tests? (?:pass|fail)|that\b|this\b|of (?:this|that|them)\b)(?!(?:\S+ ){0,6}i\b)[^.!]{2,80}? (?:must|needs?|has to|have to|should|may|can|includes?|returns?|goes|go|follows?|starts? with|ends? with|uses?|gets?|carr(?:y|ies)|costs?|wears?|receives?|is sent|are sent|is paid|are paid|is written|are written|is named|are named|is stored|are stored|is signed|are signed)\b`,
  ),
  rule(
    'convention',
    String.raw`^no [^.!]{3,60} (?:in|on|for|without) (?:our|this (?:repo|repository|project|code ?base)|any|production)\b|^no [^.!]{3,60}\b(?:ever|please)$`,
  ),
  rule(
    'convention',
    String.raw`\b(?:our|the|a) (?:[\p{L}]+ )?(?:rule|convention|policy|guideline|standard)(?: here)? (?:is|says)\b|\b(?:that is|that['’]s|it is|it['’]s) (?:our|a|the) (?:[\p{L}]+ )?(?:rule|convention|policy|guideline|standard)\b|^we have (?:a|the) (?:[\p{L}]+ )?(?:rule|convention|policy|guideline)\b`,
  ),
  rule('convention', String.raw`^(?:bitte )?(?:immer|niemals|nie) [^.!]{3,120}[\p{L}](?:en|ern|eln)[.!]*$`),
  rule(
    'convention',
    String.raw`^(?:bitte )?(?:immer|niemals|nie)(?!\p{L})(?! (?:wenn|diese|noch|wieder|mehr|dasselbe|das|die|der|ich|im|gehört|gesehen))`,
  ),
  rule('convention', String.raw`^(?:bei uns|hier|im team|in (?:diesem|unserem) (?:projekt|repo|team|code)) gilt:? (?=\S)`, ''),
  rule('convention', String.raw`^bei uns \p{L}+(?:t|en|ern|eln) `),
  rule(
    'convention',
    String.raw`^(?:bei uns|im team|in (?:diesem|unserem) (?:projekt|repo|repository|team|code)) (?:wird|werden|ist|sind|gibt|läuft|laufen|heißt|heißen|darf|dürfen|muss|müssen|schreiben|verwenden|nutzen|machen|hat|haben|geht|gehen|steht|stehen)(?!\p{L})`,
  ),
  implicit(
    'convention',
    String.raw`^(?:alle|jede[rsnm]?|sämtliche) [^.!]{2,40} (?:in|bei|von) (?:der|dem|den|unser\p{L}*) [^.!]{2,40} (?:ist|sind|hat|haben)(?!\p{L})`,
  ),
  implicit(
    'convention',
    String.raw`^(?:alle|jede[rsnm]?|sämtliche) (?!mal\b)[^.!]{2,80}? (?:muss|müssen|braucht|brauchen|soll|sollen|sollte|sollten|wird|werden|darf|dürfen|bekommt|bekommen|enthält|enthalten|kommt|kommen|gehört|gehören|geht|gehen)(?!\p{L})`,
  ),
  rule('convention', String.raw`^(?:bitte )?${nimm}(?!\p{L}) [^.!,]{0,120}?(?<!\p{L})${immer}(?!\p{L})`),
  rule(
    'convention',
    String.raw`^(?:wir|ich|man|du) [\p{L}]+ [^.!]{0,100}?(?<!\p{L})(?:grundsätzlich|generell|stets|prinzipiell|ausnahmslos|niemals)(?!\p{L})`,
  ),
  rule(
    'convention',
    String.raw`^(?:du|man|ihr|niemand) (?:darfst|darf|sollst|sollte|solltest|musst|muss|dürft) (?:[^.!]{0,60} )?(?:nie|niemals|immer|nur|nicht)(?!\p{L})`,
  ),
  rule(
    'convention',
    String.raw`^(?:immer )?wenn (?:ich|du) [^.!]{3,120}?, (?:dann )?(?:${nimm.slice(3, -1)}|immer|bitte)(?!\p{L})`,
  ),

  // The person
  implicit('person', String.raw`^my (?:\p{L}+ ){1,2}name is\b`),
  rule(
    'person',
    String.raw`^i(?:['’]ve| have) been (?:using|working|living|writing|programming|coding|teaching|vegan|vegetarian|married)\b[^.!]{2,60}\b(?:for|since)\b`,
  ),
  implicit(
    'person',
    String.raw`^i (?:do not|don['’]t) (?:eat|drink|smoke|drive|fly|speak|own|work|travel|read|use|have (?:a|an|any)) (?!${pronoun}\b|the\b)`,
  ),
  implicit(
    'person',
    String.raw`^i (?:can['’]t|cannot|can not|can only|may not|must not|mustn['’]t) (?:eat|drink|use|read|hear|see (?:colou?rs|well)|drive|access|tolerate|stand|have|digest|work|travel|fly|install)\b (?!${pronoun}\b|the\b)`,
  ),
  implicit(
    'person',
    String.raw`^i (?:mostly|usually|mainly|only|always|never|normally|generally|typically|primarily|prefer to) (?!need|want|see|get|got|had|saw|have|changed|know|did|think|asked|meant|found|said|[\p{L}]+ed\b)\p{L}+`,
  ),
  implicit('person', String.raw`^my ${herself} (?:is|are|['’]s)\b`),
  implicit(
    'person',
    String.raw`^my (?:team|company|employer|boss|manager|school|university|bank|client|customer|studio|department) ${states}\b`,
  ),
  implicit(
    'person',
    String.raw`^my ${family} (?:[\p{L}]+ )?(?:is|are|has|have|['’]s|likes?|loves?|hates?|lives?|speaks?|goes|eats?|works?|handles|does|takes care|looks after)\b`,
  ),
  implicit('person', String.raw`^i(?:['’]m| am) (?:a|an) (?!bit|little|lot|tad|fan|idiot|few|hour|minute|day)(?=\p{L})`),
  implicit(
    'person',
    String.raw`^i(?:['’]m| am) (?:also )?(?:based|located|allergic|intolerant|colou?r-?blind|deaf|blind|dyslexic|left-handed|right-handed|vegetarian|vegan|diabetic|from|new to (?!this)|responsible for|in charge of|the (?:owner|maintainer|lead|author|cto|ceo|admin|administrator|head|manager|only|founder)|working (?:as|for|at)|fluent|married|retired|called|not allowed|\d+ years old|terrible at|bad at|good at|used to (?=\p{Lu}))\b`,
  ),
  implicit(
    'person',
    String.raw`^i (?:mostly |usually |mainly |only |always |never |normally |primarily )*(?:work (?:in|at|for|as|from|with|part|full|only|mon|remote|nights?|on (?:a|an|linux|mac|windows))|live in|come from|speak|study|teach|write (?:\S+ ){1,3}for a living|program|code in|play|use (?!${pronoun}\b|the\b|a (?:for|map|loop|function|variable|hook|class|regex)|your\b)|own|drink|eat|commute|run (?:arch|linux|macos|windows|fedora|debian|ubuntu|nixos))\b`,
  ),
  implicit(
    'person',
    String.raw`^i have (?:a|an|two|three|four|no|\d+|severe|been) [^.!]{0,50}?(?:allerg(?:y|ies)|intolerance|kids?|children|dogs?|cats?|sons?|daughters?|brothers?|sisters?|monitors?|macbook|thinkpad|chromebook|degree|phd|background|diabetes|asthma|adhd|dyslexia|experience (?:with|in))\b`,
  ),
  implicit(
    'person',
    String.raw`^we(?:['’]re| are) (?:all )?(?:vegetarian|vegan|based in|located in|an? (?:[\p{L}\p{N}-]+ ){0,4}?(?:team|company|startup|start-up|family|group|shop|agency|studio|ngo|non-profit|school|university|bank|consultancy)\b)`,
  ),
  implicit(
    'person',
    String.raw`^mein(?:e|en)? (?:vor|nach|familien)?(?:name|e-?mail(?:-?adresse)?|mail(?:adresse)?|editor|shell|chef|chefin|team|firma|zeitzone|rechner|browser|geburtstag|nutzername|benutzername|arbeitszeit(?:en)?|lieblings\p{L}+|muttersprache|tastatur(?:layout)?|betriebssystem|rolle|beruf) (?:ist|sind|heißt|lautet|läuft)(?!\p{L})`,
  ),
  implicit(
    'person',
    String.raw`^meine? (?:frau|mann|partnerin|partner|tochter|sohn|kinder|mutter|vater|eltern|bruder|schwester|hund|katze|familie|kollege|kollegin|chef|chefin|steuerberater(?:in)?|vermieter(?:in)?)(?: \p{Lu}\p{L}+)? (?:kümmert|macht|betreut|verträgt|ist|sind|hat|haben|heißt|heißen|mag|mögen|isst|lebt|wohnt|arbeitet|spricht|geht)(?!\p{L})`,
  ),
  implicit(
    'person',
    String.raw`^ich (?:heiße|arbeite(?! (?:an|am|daran))|wohne|lebe|komme aus|spreche|studiere|nutze(?! (?:das|dies|die|den|der))|verwende(?! (?:das|dies|die|den|der))|benutze(?! (?:das|dies|die|den|der))|esse|trinke|vertrage) `,
  ),
  implicit(
    'person',
    String.raw`^ich \p{L}+e (?:nur|meist|meistens|immer|hauptsächlich|normalerweise|nie|niemals|selten|ausschließlich)(?!\p{L})`,
  ),
  implicit(
    'person',
    String.raw`^ich habe (?:eine?n? |zwei |drei |keine? )?[^.!]{0,40}?(?:allergie|unverträglichkeit|intoleranz|kinder|kind|hund|katze|töchter|söhne|tochter|sohn|diabetes|asthma)`,
  ),
  implicit(
    'person',
    String.raw`^ich bin (?:(?:ein|eine|von beruf) \p{L}|allergisch|farbenblind|linkshänder|vegetarisch|vegan|gelernte|zuständig|verantwortlich|(?-i:\p{Lu}\p{Ll}{3}))`,
  ),

  // What belongs to the person or the project
  implicit('project', String.raw`^our ${np}${states}\b(?! (?:wanting|asking|saying|to (?:fix|do|blame))\b)`),
  implicit(
    'project',
    String.raw`^we ${adverbs}(?!${weDont}\b)(?!run into|end up|come back|go back|keep (?:getting|seeing|having)|\p{L}+ (?:the|a|an) (?:same )?(?:function|method|variable|class|loop|value|result|hook|regex|parameter|argument|import|line|call|field|button|component|branch|commit)s?\b)\p{L}+ (?!${pronoun}(?: here)?[.!,]?(?:$| )(?!workspaces?|\p{L}+, never))\S`,
  ),
  implicit('project', String.raw`^we (?:call|name|treat|spell|refer to) (?:them|it|those|these) `),
  implicit(
    'project',
    String.raw`^we (?:do not|don['’]t) (?!know|have|need|want|see|get|understand|think|care)\p{L}+ (?!${pronoun}\b)\S`,
  ),
  implicit(
    'project',
    String.raw`^(?:the|this) (?:[\p{L}\p{N}-]+ ){0,3}?${thing}(?: (?:of|for|in|on|at|between|to) (?:the |our |a )?[\p{L}\p{N}-]+(?: [\p{L}\p{N}-]+)?| [\p{L}]+)? (?:(?:is|are)(?: also| always| only| not)? (?:${kept}|called|on|in|under|behind|based|at (?=\d)(?!\d+ ?%)|\p{N}|[\p{L}\ue001-\uf8fe/]+(?=[ ,.]?\p{N}|[^.!]*, (?:not|never)\b)|(?-i:\p{Lu}[\p{L}\p{N}]+))|(?!is\b|are\b|has\b|have\b|happens?\b|means?\b|returns?\b|ends?\b)${states})(?!\p{L})`,
  ),
  implicit(
    'project',
    String.raw`^the (?:[\p{L}\p{N}-]+ ){0,3}?(?:retention|period|limit|policy|budget|quota|notice|tax|fee|freeze|rate|deadline|allowance|threshold)(?: (?:of|for|in|on) (?:[\p{L}\p{N}-]+ ){1,3}?)? ?(?:is|are) (?:\p{N}|at least|at most|no more than|exactly|from \d)`,
  ),
  implicit(
    'project',
    String.raw`^(?!(?:this|it|that|each|a|an|the (?!${thing}\b|backend\b|frontend\b|app\b|api\b))\b)(?:[\p{L}\p{N}-]+ ){1,5}(?:is|are)(?: all| only| always| never| not)? ${kept} (?:in|on|with|without|by|at|under|to|from|as|through|for|per|every|after|before)\b`,
  ),
  implicit(
    'project',
    String.raw`^(?!${make}(?!\p{L}))(?:we|our|the|wir|unsere?|der|die|das|(?-i:\p{Lu})[\p{L}-]+ (?:is|are|runs?|happens?|takes|goes|starts?|comes?|works?|meets?))(?!\p{L})[^.!]{2,100} ${regularly}(?!\p{L})`,
  ),
  implicit(
    'project',
    String.raw`^(?:[\p{L}\p{N}'’-]+ ){1,4}(?:is|are) (?:at|from) \d{1,2}(?:[:.]\d{2}| ?(?:am|pm|to|until|o['’]clock)\b)`,
  ),
  implicit(
    'project',
    String.raw`^(?-i:\p{Lu})\p{L}+(?: (?-i:\p{Lu})\p{L}+)? (?:owns?|maintains?|leads?|manages?|is responsible for|is in charge of|is (?:our|the|my) (?:[\p{L}]+ ){0,2}(?:owner|maintainer|lead|contact|head|manager|designer|lawyer|accountant|architect|admin|administrator|boss|colleague|customer|client|doctor|dentist|expert)|reviews?|handles?|takes care of|does the|prefers|speaks)\b`,
  ),
  rule(
    'project',
    String.raw`^it(?:['’]s| is) (?:spelled|spelt|written|pronounced|called)\b(?! (?:from|by|in|with|when|on|at|once|twice|before|after|for)\b)`,
  ),
  implicit('project', String.raw`^(?:our|the|we|its?|(?-i:\p{Lu})[\p{L}-]+)\b[^.!]{3,100}, (?:not|never)\b (?!yet|sure|only)`),
  implicit('project', String.raw`^(?:der|die|das|es|wir|unsere?) [^.!]{3,100}, (?:nicht|niemals|nie|keine?) (?!wahr|mehr)`),
  implicit(
    'project',
    String.raw`^(?:unser|unsere|unserem|unseren)(?!\p{L}) (?:[\p{L}\p{N}&.-]+ ){1,5}?(?:(?:hat|haben) (?:nur|immer|keine?n?|zwei|drei|vier|\d+)|ist|sind|läuft|laufen|liegt|liegen|heißt|heißen|geht|gehen|verwendet|verwenden|nutzt|nutzen|zahlt|zahlen|braucht|brauchen|startet|beginnt|wird|werden|kommt|kommen|steht|stehen|gehört|arbeitet|arbeiten|spricht|sprechen|erwartet|erwarten|endet|schließt|öffnet)(?!\p{L})`,
  ),
  implicit(
    'project',
    String.raw`^wir (?!${wirNicht}(?!\p{L}))\p{L}+(?:en|ern|eln) (?!(?:das|die|der|den|dies|diesen?|es|ihn|sie|uns|jetzt|gleich|noch|mal)(?!\p{L}))\S`,
  ),
  implicit(
    'project',
    String.raw`^(?:der|die|das|dieses|dieser|diese) (?:[\p{L}\p{N}-]+ ){0,2}?[\p{L}-]*(?:kund(?:e|in|en)|projekt|repo|repository|api|app|anwendung|datenbank|produktion|staging|server|firma|produkt|branch|ci|shop|portal|büro|dienst|name|frist|budget|team|website|doku|dokumentation|backups?|logs|rechnungen|verträge|release|standup)(?: (?:für|von|in|im|des|der|bei) [\p{L}\p{N}&.-]+| [\p{L}\p{N}&.-]+){0,2} (?:heißt|läuft|laufen|liegt|liegen|verwendet|nutzt|zahlt|gehört|wird|werden|spricht|schließt|öffnet|beginnt|endet|beträgt|dauert|ist (?:in|mit|auf|unter|um|[\p{L}]* ?\p{N})|sind (?:in|auf|unter))(?!\p{L})`,
  ),
  implicit(
    'project',
    String.raw`^(?:der|die|das) (?:[\p{L}\p{N}-]+ ){1,4}?(?:liegt|liegen|steht|stehen|läuft|laufen|heißt|heißen) (?:im|in|auf|unter|bei|hinter) \S`,
  ),
  implicit(
    'project',
    String.raw`^the (?:[\p{L}\p{N}-]+ ){1,4}(?:is|are) (?:[\p{L}]+[-._][\p{L}\p{N}._-]+|[\ue001-\uf8fe])(?=[,.; ]|$)`,
  ),
  implicit(
    'project',
    String.raw`^(?:der|die|das) (?:[\p{L}\p{N}-]+ ){1,5}?(?:ist|sind|beträgt|lautet|heißt) (?:nicht |jetzt )?(?:[\p{L}.-]+ )?\p{N}`,
  ),
];

/** Words for a passing state. A sentence with one of them is no statement, unless another word says that it lasts. */
export const PASSING: readonly RegExp[] = [
  /\b(?:since|again|just|still(?! (?:has|have|need|must|support|use))|yet|suddenly|recently|ago|yesterday|currently|momentarily|this (?:morning|afternoon|evening|week|month|sprint)|last (?:night|week|time|run|merge|commit|deploy|build)|next (?:week|month|time)|in (?:\w+ ){1,2}(?:minutes?|hours?|moment|hurry)|on (?:vacation|holiday|sick leave)|out of office|at the (?:airport|office)|somehow|seems?|looks like|apparently|weird|strange|why|wrong|broken|missing|fail(?:s|ed|ing)?|crash(?:es|ed|ing)?|instead)\b/i,
  /\b(?:is|are|was|were|['’]s|['’]re|gets?|keeps?|looks?|has) (?:\w+ )?(?:broken|down|slow|slower|red|green|failing|gone|late|stuck|full|empty|outdated|wrong|missing|ready|done|finished|unavailable|offline|unreachable|flaky|huge|ugly|confusing|annoying|too|blank|frozen|very slow|out of (?:stock|order|office|memory|date|disk|sync)|about to|crashed|stopped|failed|not (?:working|responding|reachable|loading|there|available|running|starting|sure)|no longer working)\b/i,
  /\b(?:is|are|['’]s|['’]re) (?:now |always )?(?!(?:missing|being|nothing|something|everything|string|king|ring|during|pricing|billing|staging|testing|logging|tracing|monitoring|training|marketing|accounting|shipping|spring|processing)\b)[a-z]{3,}ing\b/i,
  /\b(?:a|the|this|some|an) (?:bug|error|problem|issue|typo|crash|exception|warning|conflict|outage|memory leak|regression|failure)\b/i,
  /\bat \d+ ?%/i,
  /(?<!\p{L})(?:gerade|wieder|seit|kaputt|momentan|aktuell|gestern|vorhin|eben|schon|fertig|noch nicht|nicht erreichbar|zu langsam|fehlerhaft|rot|plötzlich|später|leider|irgendwie|scheinbar|anscheinend|im urlaub|krank|letzte (?:woche|nacht)|nächste woche|einen? (?:fehler|problem|bug)|verspätung|(?:ist|sind) zu \p{L}+|hunger)(?!\p{L})/iu,
];

/** Sentences that are no statement, or for this once. They are compared after the lead-in is removed. */
export const NO_STATEMENT: readonly RegExp[] = [
  // Questions without a question mark
  /^(?:do|does|did|is|are|was|were|can|could|would|should|shall|will|have|has|had|am|may|might|isn['’]t|aren['’]t|don['’]t you|doesn['’]t|didn['’]t|what|which|who|whom|whose|why|where|how) (?!not\b)/i,
  /^(?:wer|was|wie|warum|wieso|weshalb|wo|wann|welche[rsmn]?|ist|sind|hat|haben|kann|können|kannst|könnt|soll|sollen|muss|müssen|darf|dürfen|gibt|verwenden wir|nutzen wir|benutzen wir|läuft|weißt|war|wird|werden) /i,
  // Suppositions
  /^(?:if|imagine|suppose|supposing|assume|assuming|let['’]?s (?:say|assume|pretend)|say |pretend|hypothetically|maybe|perhaps|what if|in an ideal world|consider|in theory|unless)\b/i,
  /^(?:angenommen|vielleicht|stell dir vor|nehmen wir an|falls|wenn wir|theoretisch|eventuell)(?!\p{L})/iu,
  /\b(?:i wonder|we might|we could|maybe we|perhaps we|we may|should we|i think we should|we should (?:probably|maybe)|not sure|i guess|probably|presumably)\b/i,
  /(?<!\p{L})(?:wir könnten|wir sollten vielleicht|ich frage mich|bin (?:mir )?nicht sicher|vermutlich|wahrscheinlich)(?!\p{L})/iu,
  // Denials
  /\b(?:never said|(?:have|has)(?: not|n['’]t) (?:yet )?(?:decided|agreed|settled|chosen)|not true|(?:do|does)(?: not|n['’]t) always|not always|no decision|nothing (?:is|has been) decided|did(?: not|n['’]t) (?:decide|agree|say))\b/i,
  /(?<!\p{L})(?:noch (?:nicht|nichts) (?:entschieden|beschlossen|vereinbart|festgelegt)|nicht immer|stimmt nicht, dass)(?!\p{L})/iu,
  // Exercises and stories
  /\bin (?:the|this|that|my) (?:exercise|example|story|task|scenario|game|book|novel|text|problem|chapter|movie|film|puzzle|homework)\b/i,
  // For this once
  /\b(?:for now|right now|at the moment|this time|just (?:this )?once|this once|only this|for the moment|(?<!(?:as of|from|starting) )today|tonight|tomorrow|until (?:then|i|we|the)|temporarily|in the meantime|in (?:this|the) (?:file|function|method|class|commit|pr|pull request|branch|test|case|diff|line|loop|component|query|script|message|thread|chat)|for (?:this|that) (?:file|one|function|method|class|commit|pr|pull request|branch|test|case|task|ticket|change|step|time|page|script|answer))\b/i,
  /(?<!\p{L})(?:diesmal|dieses mal|nur jetzt|vorerst|erst ?mal|im moment|gerade eben|(?<!(?:ab|von) )heute|morgen früh|in diese[mr] (?:datei|funktion|klasse|commit|branch|test|fall)|für diese[nrs]? (?:datei|commit|funktion|test|fall|aufgabe|ticket))(?!\p{L})/iu,
  /^(?:please )?(?:tell|ask|remind|inform|notify) (?:\p{L}+ ){1,3}(?:that|whether|if)\b|^(?:i|we) (?:read|heard|saw|think|thought|believe|hope|guess|assume|meant?)\b|^(?:he|she|they|someone|somebody) |\bnothing yet\b/iu,
  /\bthis (?!repo|repository|project|code|company|team|house|family|app\b|application|department|organi[sz]ation|country|product|service|language|laptop|machine|computer|customer|client|area|library|monorepo|api\b|year|way)\p{L}+/iu,
  /^[^,]{0,40}(?<!\b(?:rule|policy|convention|guideline|standard) )\b(?:said|says|told|wrote|claims?|thinks)\b/i,
  /(?<!for )\blater\b(?! than)|\b(?:haha|lol|lmao|just kidding|jk)\b|\bsince (?:the|yesterday|this|last|noon|today)\b/i,
  /(?<!\p{L})seit (?:dem|der|heute|gestern|vorhin)(?!\p{L})/iu,
  // Complaints and irony
  /^(?:oh (?:great|wonderful|nice)|great,|sure,|wonderful|fantastic|awesome,|as always|nice,|thanks|yeah,? right|na toll|toll,|super,|klar,|wie immer|jedes mal, wenn ich)\b/i,
  // Orders that begin like a statement
  /^(?:remember|don['’]?t forget|do not forget|note) to (?!always|never)/i,
  /\b(?:i|we)(?:['’]d| would) like (?:to |you to (?!always|never|only|generally|usually))?(?:write|see|add|have|know|get|build|create|make|fix|a|an|the)\b/i,
];
