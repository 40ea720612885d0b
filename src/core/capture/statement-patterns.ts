/** What a rule is for. The kind decides the category of the proposed fact. */
export type StatementKind = 'convention' | 'preference' | 'decision' | 'person' | 'project' | 'remember';

interface StatementPattern {
  readonly kind: StatementKind;
  readonly pattern: RegExp;
  /** Replaces the match, so that the value can be understood alone. If absent, the sentence stays as it was said. */
  readonly replacement?: string;
}

const subject = String.raw`(?:[\p{L}\p{N}'’./+#\ue001-\uf8fe-]+ ){1,6}?`;
const always = '(?:always|never)';
/** Times that repeat. */
const regularly =
  '(?:every (?:day|night|morning|evening|weekday|week|month|year|quarter|sprint|two weeks|other week|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|each (?:day|night|morning|week|month|year|quarter|sprint|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|daily|weekly|nightly|on (?:mondays|tuesdays|wednesdays|thursdays|fridays|saturdays|sundays|weekdays|weekends))';
const stored = '(?:stored|kept|hosted|managed|tracked|generated|documented|defined|built|deployed|versioned|maintained|published|written|named|called|licensed|configured|located|formatted|returned|signed|reset|rotated|reviewed)';
const herself =
  '(?:(?:full |first |last |family |middle )?name|nickname|pronouns|(?:work |private |business )?e-?mail(?: address)?|phone(?: number)?|birthday|manager|boss|team lead|team|company|employer|role|job(?: title)?|profession|time ?zone|address|home ?town|city|country|native language|mother tongue|first language|editor|ide|shell|terminal|operating system|os|machine|laptop|computer|keyboard(?: layout)?|browser|(?:github|gitlab|slack|git) (?:user ?name|handle|name|account)|user ?name|handle|working hours|office hours|working days|tech stack|stack|wife|husband|partner|daughter|son|dog|cat|doctor|diet|font|colou?r scheme|theme|(?:favou?rite|preferred|default|usual) [\\p{L} ]{2,40})';

const rule = (kind: StatementKind, source: string, replacement?: string): StatementPattern => ({
  kind,
  pattern: new RegExp(source, 'iu'),
  ...(replacement !== undefined && { replacement }),
});

/**
 * Sentences that sound lasting. The first pattern that matches decides. They are tried after a sentence lost its lead-in ("ok, and
 * please"), and only if nothing in it says that it is a question, a supposition or for this once.
 */
export const STATEMENTS: readonly StatementPattern[] = [
  // The person says that it lasts.
  rule('remember', String.raw`^(?:please )?(?:do ?n[o'’]?t forget|remember|keep in mind|bear in mind|note|make a note|take a note)(?: for (?:later|the future|next time))?(?:,? that |: ?|, )(?=\S)`, ''),
  rule('remember', String.raw`^(?:please )?(?:do ?n[o'’]?t forget|remember|keep in mind|bear in mind) (?=(?:we|i|our|my|all|every|there)\b)`, ''),
  rule('remember', String.raw`^(?:for (?:future|your) reference|note for the future|note to self|fyi|for your information|for the record|just so you know|to your information)[,:]? (?=\S)`, ''),
  rule('remember', String.raw`^(?:bitte )?(?:merke?|notiere?) dir(?: bitte)?[:,]? (?:dass )(?=\S)`, 'Es gilt, dass '),
  rule('remember', String.raw`^(?:bitte )?(?:merke?|notiere?) dir(?: bitte)?[:,] ?(?=\S)`, ''),
  rule('remember', String.raw`^(?:bitte )?(?:denke? (?:immer )?daran|beachte|bedenke|vergiss nicht|zur info|behalte im kopf)[:,]? dass (?=\S)`, 'Es gilt, dass '),
  rule('remember', String.raw`^(?:zur info|nur zur info|für die zukunft|für später)[:,] ?(?=\S)`, ''),
  rule('convention', String.raw`^(?:from now on|going forward|from here on(?: out)?|in (?:the )?future|henceforth|as of (?:now|today)|from today(?: on)?)[,:]? (?=\S)`, ''),
  rule('convention', String.raw`[,;]? (?:from now on|going forward|from here on(?: out)?|in (?:the )?future|henceforth|as of now|from today on)(?=[.!]?$|[,;] | (?:please|and|use|when|for|in|on)\b)`, ''),
  rule('convention', String.raw`^(?:ab (?:jetzt|sofort|heute)|von (?:jetzt|nun) an|künftig|zukünftig|in zukunft)[,:]? (?=\S)`),
  rule('convention', String.raw` (?:ab (?:jetzt|sofort|heute)|von (?:jetzt|nun) an|künftig|zukünftig|in zukunft)\b`),

  // Decisions
  rule('decision', String.raw`\b(?:we|the team|our team|management)(?:['’]ve| have| has)? (?:also |now |just |all |finally |already )?(?:decided|agreed|settled|chose|chosen|opted|concluded|committed)\b(?! (?:yet|whether|if)\b)`),
  rule('decision', String.raw`^(?:(?:\S+ ){0,6})?we(?:['’]re| are|['’]ll| will)? (?:now )?(?:going with|go with|went with|gone with|standardi[sz]ing on|standardi[sz]ed on)\b`),
  rule('decision', String.raw`^(?:(?:\S+ ){0,4})?we(?:['’]ve| have)? (?:recently |just |now )?(?:switched|moved|migrated|changed|upgraded) (?:away )?(?:from|to|over)\b`),
  rule('decision', String.raw`^(?:(?:\S+ ){0,4})?we (?:no longer|do not|don['’]t|stopped|dropped|never) (?:use|using|support|supporting|ship|shipping|need|want|do|offer|maintain|the)?\b`),
  rule('decision', String.raw`^(?:the|our) decision is\b`),
  rule('decision', String.raw`^(?:wir|das team) (?:haben|hat) (?:uns |sich )?(?:\S+ ){0,12}?(?:entschieden|geeinigt|beschlossen|vereinbart|festgelegt)\b`),
  rule('decision', String.raw`^wir (?:sind|steigen|stellen|wechseln) (?:\S+ ){0,8}?(?:umgestiegen|gewechselt|um)(?=[.!,]|$)`),

  // Preferences
  rule('preference', String.raw`^i want you to (?=${always}\b)`, ''),
  rule('preference', String.raw`^i (?:really |generally |usually |normally |mostly |much |strongly |still |also )?(?:prefer|favou?r|dislike|hate|love|like|can['’]t stand|(?:do not|don['’]t) (?:like|want))\b(?! (?:it|that|this|these|those|how|the idea|to (?:know|see|add|have|be|get|start|fix))\b)`),
  rule('preference', String.raw`^i(?:['’]d| would) (?:rather|prefer)\b`),
  rule('preference', String.raw`^(?:in general|generally|as a rule|by default|as a general rule|normally|usually)[,:]? (?=(?:i|we|use|no|all|never|always|do|don['’]t|please|keep|write|prefer)\b)`, ''),
  rule('preference', String.raw`^ich (?:bevorzuge|mag|hasse|liebe|möchte (?:immer|nie|grundsätzlich|generell)|will (?:immer|nie|grundsätzlich|generell))\b(?! (?:es|das|dies|diese|diesen)\b)`),
  rule('preference', String.raw`^(?:grundsätzlich|generell|in der regel|standardmäßig)[,:]? (?=\S)`),

  // Rules
  rule('convention', String.raw`^(?:${always}|do ?n[o'’]?t ever|do not ever)\b(?!-| mind| say never| again\b)`),
  rule('convention', String.raw`^(?:you|we|one|everyone|everybody|agents?) (?:should|must|have to|need to|has to|can|may|are to) (?:${always})\b`),
  rule('convention', String.raw`^(?:use|prefer|write|keep|put|name|store|format|run|deploy|commit|push|log|test) [^.!]{2,80}, never\b`),
  rule('convention', String.raw`^we (?:${always}|only ever|usually|normally|generally)\b`),
  rule('convention', String.raw`^${subject}(?:should|must|have to|need to|needs to|has to) (?:${always})\b`),
  rule('convention', String.raw`^(?:please )?do(?: not|n['’]t) [^.!]{3,120}[, ]ever[.!]?$`),
  rule('convention', String.raw`^(?:please )?stop (?:using|adding|writing|apologi[sz]ing|putting|creating|generating|summari[sz]ing|explaining|inserting|repeating|suggesting)\b`),
  rule('convention', String.raw`^(?:please )?(?:whenever|every time|each time|any ?time) (?:you|we|i|a|an|the)\b[^.!]{3,160}, `),
  rule('convention', String.raw`^(?:when|before|after) (?:you|we)\b[^.!]{3,120}, ${always}\b`),
  rule('convention', String.raw`^(?:all|every|each|any)\b[^.!]{2,80}? (?:must|needs?|has to|have to|should)\b`),
  rule('convention', String.raw`^(?:all|every|each)\b[^.!]{0,40}\bour\b[^.!]{0,60}? (?:is|are|use|uses|go|goes|follow|follows|start|starts|end|ends|has|have)\b`),
  rule('convention', String.raw`^no [^.!]{3,60} in (?:our|this (?:repo|repository|project|codebase|code base))\b`),
  rule('convention', String.raw`\b(?:our|the) (?:[\p{L}]+ )?(?:rule|convention|policy|guideline|standard)(?: here)? is\b|\b(?:that is|that['’]s|it is|it['’]s) (?:our|a|the) (?:[\p{L}]+ )?(?:rule|convention|policy|guideline|standard)\b`),
  rule('convention', String.raw`^(?:bitte )?(?:immer|niemals|nie)\b`),
  rule('convention', String.raw`^(?:bei uns|hier) gilt:? (?=\S)`, ''),
  rule('convention', String.raw`^(?:alle|jede[rsn]?)\b[^.!]{2,80}? (?:muss|müssen|braucht|brauchen|soll|sollen|hat|haben)\b`),
  rule('convention', String.raw`^(?:bitte )?[\p{L}]+e (?:bitte )?(?:immer|nie|niemals)\b`),

  // The person
  rule('person', String.raw`^my ${herself} (?:is|are|['’]s)\b(?! (?:not working|broken|failing|down|slow|gone|full|wrong)\b)`),
  rule('person', String.raw`^i(?:['’]m| am) (?:a|an) (?!bit|little|lot|tad|fan|idiot|few)(?=\p{L})`),
  rule('person', String.raw`^i(?:['’]m| am) (?:based|located|allergic|intolerant|colou?r-?blind|deaf|blind|dyslexic|left-handed|right-handed|vegetarian|vegan|diabetic|from|new to|responsible for|in charge of|the (?:owner|maintainer|lead|author|cto|ceo|admin|administrator|head|manager|only)|working (?:as|for|at)|fluent|married|retired|called)\b`),
  rule('person', String.raw`^i (?:mostly |usually |mainly |only |always |never )?(?:work (?:in|at|for|as|from|with|on (?:a|an|linux|mac|windows))|live in|speak|use (?!this|that|it\b|the (?:same|following|above))|own|drink|eat|run (?:arch|linux|macos|windows|fedora|debian|ubuntu))\b`),
  rule('person', String.raw`^we(?:['’]re| are) (?:vegetarian|vegan|based in|located in|a (?:team|company|startup|family|group) of)\b`),
  rule('person', String.raw`^mein(?:e)? (?:vor|nach|familien)?(?:name|e-?mail(?:-adresse)?|mail(?:adresse)?|editor|shell|chef|chefin|team|firma|zeitzone|rechner|browser|geburtstag|nutzername|benutzername|arbeitszeit(?:en)?|lieblings\p{L}+) (?:ist|sind|heißt|lautet)\b`),
  rule('person', String.raw`^ich (?:heiße|arbeite (?:in|bei|als|für|mit|von)|wohne|lebe|spreche|nutze|verwende|benutze)\b(?! (?:das|dies|diese|diesen|gerade)\b)`),
  rule('person', String.raw`^ich bin (?:(?:ein|eine|von beruf) \p{L}|allergisch|farbenblind|linkshänder|vegetarisch|vegan|gelernte|zuständig|verantwortlich|(?=\p{Lu}\p{Ll}{3}))`),

  // What belongs to the person or the project
  rule('project', String.raw`^our ${subject}(?:is|are|runs?|lives?|lie|lies|uses?|has|have|goes|go|pays?|starts?|targets?|follows?|needs?|ends?|expects?|sits?|speaks?)\b`),
  rule('project', String.raw`^we (?:also |only |mostly |mainly |currently |all )?(?:use|deploy|release|host|write|build|follow|support|target|store|keep|format|name|ship|log|track|review|pay|bill|invoice|run (?:on|in|our|the|all|everything)|work (?:in|with|from|on (?!this|a |the ))|mock|tag|publish)\b(?! (?:this|that|it)\b)`),
  rule('project', String.raw`^(?:the|this) (?:project|repo|repository|code ?base|monorepo|product|library|company|team|main branch|default branch|production \p{L}+|prod(?:uction)?|staging(?: \p{L}+)?|test \p{L}+|dev \p{L}+|ci|pipeline|api(?: [\p{L}]+){0,2}|frontend|front end|backend|back end|app|application|website|service|server|database|customer|client|public name|docs|documentation)(?: [\p{L}]+){0,3}? (?:is (?:${stored}|at|on|in|under|behind|based|\p{N}|[\p{L}\ue001-\uf8fe/]+(?=[ ,.]?\p{N}|[^.!]*, not\b)|(?-i:\p{Lu}\p{L}+))|runs? (?:on|in|at|under|every|with|behind)|lives? (?:on|in|at|under)|uses?|targets?|supports?|talks? to|speaks?|requires?|follows?|deploys?|belongs? to)`),
  rule('project', String.raw`^(?:[\p{L}\p{N}-]+ ){1,4}(?:is|are) (?:${stored}) (?:in|on|with|by|at|under|to|from|as|through)\b`),
  rule('project', String.raw`^(?:we|our|the|(?-i:\p{Lu})[\p{L}-]+)\b[^.!]{2,100} ${regularly}\b`),
  rule('project', String.raw`^(?:[\p{L}\p{N}'’-]+ ){1,4}is at \d{1,2}(?:[:.]\d{2}| ?(?:am|pm|o['’]clock)\b)`),
  rule('project', String.raw`^(?-i:\p{Lu})\p{L}+(?: (?-i:\p{Lu})\p{L}+)? (?:owns?|maintains?|leads?|manages?|is responsible for|is in charge of|is the (?:owner|maintainer|lead|contact|head)|reviews?|handles?|takes care of)\b`),
  rule('project', String.raw`^it(?:['’]s| is) (?:spelled|spelt|written|pronounced|called)\b`),
  rule('project', String.raw`^(?:our|the|we|its?)\b[^.!]{3,100}, (?:not|never)\b`),
  rule('project', String.raw`^(?:unser|unsere|unseren)\b (?:[\p{L}\p{N}-]+ ){1,4}?(?:ist|sind|läuft|laufen|liegt|liegen|heißt|heißen|geht|gehen|verwendet|verwenden|nutzt|nutzen|hat|haben|zahlt|zahlen|braucht|brauchen|startet|beginnt)\b`),
  rule('project', String.raw`^wir (?:verwenden|benutzen|nutzen|deployen|veröffentlichen|schreiben|bauen|hosten|unterstützen|speichern|formatieren|setzen|pushen|mocken|arbeiten)\b(?! (?:das|dies|gerade|jetzt)\b)`),
  rule('project', String.raw`^(?:der|die|das|dieses) (?:kunde|kundin|projekt|repo|repository|api|app|datenbank|produktion|staging|server|firma|produkt|hauptbranch|ci)(?: [\p{L}\p{N}&.-]+){0,3}? (?:heißt|läuft|liegt|verwendet|nutzt|zahlt|gehört|wird (?:in|mit|auf|jede)|ist (?:in|mit|auf|unter))\b`),
];

/** Sentences that are no statement, or for this once. They are compared after the lead-in is removed. */
export const NO_STATEMENT: readonly RegExp[] = [
  // Questions without a question mark
  /^(?:do|does|did|is|are|was|were|can|could|would|should|shall|will|have|has|had|am|may|might|isn['’]t|aren['’]t|don['’]t you|doesn['’]t|didn['’]t|what|which|who|whom|whose|why|where|how) (?!not\b)/i,
  /^(?:wer|was|wie|warum|wieso|weshalb|wo|wann|welche[rsmn]?|ist|sind|hat|haben|kann|können|kannst|könnt|soll|sollen|muss|müssen|darf|dürfen|gibt|verwenden wir|nutzen wir|benutzen wir|läuft|weißt|war|wird|werden) /i,
  // Suppositions
  /^(?:if|imagine|suppose|supposing|assume|assuming|let['’]?s (?:say|assume|pretend)|say |pretend|hypothetically|maybe|perhaps|what if|in an ideal world|consider|in theory|unless)\b/i,
  /^(?:angenommen|vielleicht|stell dir vor|nehmen wir an|falls|wenn wir|theoretisch|eventuell)(?!\p{L})/iu,
  /\b(?:i wonder|we might|we could|maybe we|perhaps we|we may|should we|i think we should|we should (?:probably|maybe)|not sure)\b/i,
  /(?<!\p{L})(?:wir könnten|wir sollten vielleicht|ich frage mich|bin (?:mir )?nicht sicher)(?!\p{L})/iu,
  // Denials
  /\b(?:never said|(?:have|has)(?: not|n['’]t) (?:yet )?(?:decided|agreed|settled|chosen)|not true|(?:do|does)(?: not|n['’]t) always|not always|no decision|nothing (?:is|has been) decided|did(?: not|n['’]t) (?:decide|agree|say))\b/i,
  /(?<!\p{L})(?:noch (?:nicht|nichts) (?:entschieden|beschlossen|vereinbart|festgelegt)|nicht immer|stimmt nicht, dass)(?!\p{L})/iu,
  // For this once
  /\b(?:for now|right now|at the moment|this time|just (?:this )?once|this once|only this|for the moment|(?<!(?:as of|from) )today|tonight|tomorrow|until (?:then|i|we|the)|temporarily|in the meantime|in (?:this|the) (?:file|function|method|class|commit|pr|pull request|branch|test|case|diff|line|loop|component|query|script|message|thread|chat)|for (?:this|that) (?:file|one|function|method|class|commit|pr|pull request|branch|test|case|task|ticket|change|step|time|page|script|answer))\b/i,
  /(?<!\p{L})(?:diesmal|dieses mal|nur jetzt|vorerst|erst ?mal|im moment|gerade eben|heute|morgen früh|in diese[mr] (?:datei|funktion|klasse|commit|branch|test|fall)|für diese[nrs]? (?:datei|commit|funktion|test|fall|aufgabe|ticket))(?!\p{L})/iu,
  /\bthis (?:file|function|method|class|test|line|diff|one|time|message|commit|pr|branch|regex|query|loop|component|error|bug|snippet|ticket|issue|thing|variable|button|page)\b/i,
  // Complaints and irony
  /^(?:oh (?:great|wonderful|nice)|great,|sure,|wonderful|fantastic|awesome,|as always|nice,|thanks|yeah,? right|na toll|toll,|super,|klar,|wie immer)\b/i,
  // Orders that begin like a statement
  /^(?:remember|don['’]?t forget|do not forget|note) to (?!always|never)/i,
  /\b(?:i|we)(?:['’]d| would) like (?:you to |to )?(?:write|see|add|have|know|get|build|create|make|fix|a|an|the)\b/i,
];
