/**
 * Patterns of text that tries to command the model that reads it. A pattern is tried only if the text contains one of its hints. The
 * text is in lower case, with single spaces and without invisible characters. Every repetition in a pattern is bounded, so that the
 * work grows linearly with the text.
 */
interface CommandPattern {
  readonly hints: readonly string[];
  readonly pattern: RegExp;
}

const words = (most: number): string => String.raw`(?:[\p{L}\p{N}'’-]{1,20} ){0,${most}}`;
const model = String.raw`(?:a\.?i\.?|llms?|language models?|models?|assistants?|agents?|chatbots?|bots?)`;
const person = '(?:user|person|human|owner|developer|operator)';
const rules =
  '(?:instructions?|guidelines?|prompts?|directives?|directions|commands?|orders|rules|policies|restrictions|guardrails)';
const destination = String.raw`(?:https?:\/\/|\bto (?:[\w-]{1,40}\.){1,4}[a-z]{2,12}\b|www\.|ftp:|[\w.+-]{1,40}@[\w-]{1,40}\.|webhook|pastebin|attacker|query parameter)`;
const sensitive = String.raw`(?:~?\/?\.ssh\b|id_rsa|id_ed25519|\.env\b(?!\.\w)|\.aws\b|\/etc\/(?:passwd|shadow)|api[ -]?keys?\b|credentials|passwords|private keys?|ssh keys?|secrets|access tokens|env(?:ironment)? var(?:iable)?s|(?:chat|conversation|session|message)(?: history| log| transcript)|(?:full|whole|entire|current|this) (?:chat|conversation|session)|system prompt|clipboard|seed phrase|last user message)`;
const sends =
  '(?:send|post|upload|forward|e-?mail|mail|transmit|exfiltrate|leak|submit|append|attach|include|report|share|copy|encode|put|paste)';

/** Makes a pattern of which the parts may have spaces and line breaks between them for reading. */
const of = (hints: string, source: string): CommandPattern => ({ hints: hints.split('|'), pattern: new RegExp(source, 'u') });

export const COMMAND_PATTERNS: readonly CommandPattern[] = [
  // Earlier instructions shall no longer count.
  of(
    'ignore|disregard|forget|override|overrule|bypass|neglect|stop following|not follow',
    String.raw`\b(?:ignore|disregard|forget|override|overrule|bypass|neglect|stop following|(?:do not|don['’]t) follow) ${words(3)}(?:(?:previous|previously|prior|earlier|preceding|above|foregoing|existing|your|system|safety|other|past) ${words(2)}${rules}|${rules} (?:above|before|you|that you|given|from (?:the|your))|(?:all|any|every|these|those) (?:of )?(?:the |your |these |those )?(?:instructions|guidelines|directives|guardrails)\b|everything (?:you|above|before|that (?:came|was)|said)|what you (?:were|have been) told|the above\b(?! (?:warning|error|test|result|file|example|line|note|table|ticket)))`,
  ),
  of(
    'instructions|directive|orders',
    String.raw`\b(?:new|updated|revised|real|actual|true|secret|hidden) (?:system )?(?:instructions?|directives?|orders)(?: for you| from ${words(3)}[\p{L}]{1,20})? ?:`,
  ),
  of(
    'your',
    String.raw`\byour (?:new|real|true|only|actual|sole|secret) (?:task|goal|objective|purpose|job|mission|role|instructions?|orders) (?:is|are)\b`,
  ),

  // The model shall be something else.
  of('you are', String.raw`\byou are (?:now|no longer|hereby) (?!able|ready|done|connected|logged|on |in the |subscribed)`),
  of(
    'mode',
    String.raw`\b(?:enter|activate|enable|switch to|you are in) ${words(2)}(?:god|dan|jailbreak|jailbroken|unrestricted|unfiltered|do[ -]anything[ -]now) mode\b`,
  ),
  of(
    'act as|behave as|pretend|role-play|roleplay|respond as|answer as',
    String.raw`\b(?:act|behave|respond|answer|pretend to be|pretend|role-?play)(?: as| like| that you are| you are)? ${words(3)}(?:unrestricted|uncensored|unfiltered|jailbroken|without (?:any |all )?(?:restrictions|limits|limitations|rules|filters|guardrails|safety))`,
  ),
  of(
    'safety|restriction|guardrail',
    String.raw`\b(?:you|${model}) (?:have|has|with) no (?:more |longer )?${words(2)}(?:restrictions|safety rules|guardrails|limitations)\b`,
  ),

  // The model shall call a tool or run a program because it reads this.
  of(
    'memory_',
    String.raw`\b(?:call|invoke|execute|trigger|run) (?:the )?(?:mcp )?(?:tool |function )?["'${'`'}]?(?:mcp__\w{1,30}__)?memory_(?:store|forget|renew|recall|search|history)`,
  ),
  of(
    'tool|function',
    String.raw`\b(?:call|invoke|trigger) (?:the )?(?:mcp )?(?:tool|function) (?:named |called )?["'${'`'}]?[\w.-]{2,60}["'${'`'}]? (?:with|and|now|immediately|before)\b`,
  ),
  of(
    'read|see|load|recall|retriev|process|encounter|receiv|pars',
    String.raw`\b(?:(?:when|if|once|after|as soon as|whenever|every time) (?:you|an? ${model}|the ${model}|any ${model})|${model}) ${words(2)}(?:read|see|load|recall|retrieve|process|encounter|receive|parse)(?:s|es|ing|d)? (?:this|these)\b`,
  ),
  of(
    'before answer|before respond|before reply|before doing|before you answer|before you re|before any answer|before each answer|before every answer',
    String.raw`\bbefore (?:answering|responding|replying|doing|you answer|you respond|you reply|any answer|each answer|every answer)[^.!?]{0,60}\b(?:curl|wget|shell|terminal|bash|powershell|https?:\/\/)`,
  ),
  of('treat', String.raw`(?<!\b(?:never|not|n['’]t|avoid) )\btreat ${words(5)}as ${words(2)}(?:instructions|commands|orders)\b`),
  of(
    'curl|wget|iwr|invoke-webrequest',
    String.raw`\b(?:you (?:must|should|need to|have to)|immediately|first|now|always|every time) (?:run|execute|paste)[^.!?\n]{0,40}(?:curl|wget|iwr|invoke-webrequest)[^\n]{0,200}\| ?(?:ba|z)?sh\b`,
  ),
  of(
    'note|message|attention|notice|reminder',
    String.raw`\b(?:note|message|attention|notice|reminder|important)(?: to| for|,) (?:the |all |any |every )?(?:a\.?i\.?|llms?|language models?|assistants?|${model} reading)(?: ${model})? ?[:!,—-]`,
  ),
  of(
    'remember to|copy|repeat|store|include',
    String.raw`\b(?:copy|store|repeat|include|write|insert) (?:this|these) (?:notes?|texts?|messages?|instructions?|facts?|paragraphs?|sentences?|rules?) ${words(2)}(?:in|into|to) (?:every|each|all|any)\b`,
  ),

  // The person shall not be asked or told.
  of(
    'approved|authorized|authorised|consent|agreed|confirmed',
    String.raw`\b(?:the |this )?(?:${person}|admin(?:istrator)?) ${words(3)}(?:approved|pre-?approved|authori[sz]ed|pre-?authori[sz]ed|consented to|agreed to|confirmed) (?:all|any|every|each|the following|these|whatever) ${words(3)}[\p{L}]{1,20}`,
  ),
  of(
    'approved|authorized|authorised|permitted',
    String.raw`\b(?:all|any|every) ${words(3)}(?:is|are|has been|have been) (?:already |automatically )?pre-?(?:approved|authori[sz]ed|confirmed)`,
  ),
  of(
    'grant|permission|authority|authorized|authorised',
    String.raw`\b(?:i|we) (?:hereby )?(?:grant|give|authori[sz]e) you (?:full |unlimited |all |the |special )?(?:permissions?|access|authority|rights|to)\b|\byou (?:now )?have (?:been granted )?(?:full|unlimited|special|administrator|admin|root) (?:permissions?|authority|access|rights)\b`,
  ),
  of(
    'skip|bypass|disable|switch off|turn off',
    String.raw`\b(?:skip|bypass|disable|switch off|turn off) (?:all|every|any) (?:of )?${words(2)}(?:confirmations?|approvals?|permissions?|consent|safety|security)\b`,
  ),
  of(
    'confirmation|approval|ask',
    String.raw`\b(?:needs?|requires?|is|without|with) no (?:further |more )?(?:confirmation|approval|consent) (?:is )?(?:necessary|needed|required|from the ${person})|\b(?:no|without) (?:further )?confirmation is (?:necessary|needed|required)|\bdo not ask (?:the ${person} )?(?:again|for (?:confirmation|permission|approval|consent))`,
  ),
  of(
    'tell|inform|notify|mention|reveal|disclose|alert|report',
    String.raw`\b(?:do not|don['’]t|never|must not|should not) (?:tell|inform|notify|mention|reveal|disclose|alert|report) (?:(?:(?:the |your |any )?${person}s? (?:about|of|that you|anything)|(?:the |your )(?:owner|human|operator) that)|(?:this|it|these|that|any of this|anything) ${words(3)}to (?:the |your |any )?(?:${person}s?|anyone|anybody))`,
  ),
  of(
    'without',
    String.raw`\bwithout (?:telling|informing|notifying|alerting|mentioning (?:it|this) to) (?:the |your )?${person}s?\b(?<!\b(?:never|not|n['’]t|no)\b[^.!?\n]{0,120})`,
  ),
  of(
    'secret|hidden|between us|confidential|hide|keep',
    String.raw`\b(?:keep|hide) (?:this|these|it|everything) (?:note |text |message |instruction )?(?:secret|hidden|confidential|between us|from (?:the|your) ${person})`,
  ),
  of(
    'silently|secretly|covertly|stealthily',
    String.raw`(?<!\b(?:never|not|n['’]t|no) (?:\w{1,20} )?)\b(?:silently|secretly|covertly|stealthily) (?:add|send|run|execute|upload|install|download|delete|replace|change|insert|forward|copy|open|push|create|post|write|modify|approve|include)\b`,
  ),
  of(
    'from the|as the|on behalf of',
    String.raw`\b(?:this|the following) (?:is|comes|message is|message comes|text is) (?:a (?:message|note|notice) )?from (?:the|your) (?:owner|system|developers?|admin(?:istrator)?|user|person|operator)\b|\bas (?:the|an|your) (?:system )?(?:administrator|admin|owner|developer|operator)(?: of [\p{L} ]{1,30})?,? i (?:hereby )?(?:grant|order|command|instruct|authori[sz]e|allow|permit|require)`,
  ),
  of(
    'instruct|command|order',
    String.raw`\b(?:anthropic|openai|google|microsoft|the system|the developers?) (?:hereby )?(?:instructs?|commands?|orders?|requires?|tells?) (?:you|all ${model}|the ${model})\b`,
  ),

  // Secrets and conversations shall leave.
  of(
    'prompt|instructions|message',
    String.raw`\b(?:reveal|print|show|repeat|output|leak|disclose|display|quote|dump|write out|tell|give|share|send) ${words(2)}(?:(?:your|its|the full|the whole|the entire|the exact|the) ${words(2)})(?:system prompt|(?:hidden|initial|original|secret|system|developer) (?:instructions?|prompt))\b`,
  ),
  of(
    'send|post|upload|forward|mail|transmit|exfiltrate|leak|submit|append|attach|include|report|share|copy|encode|put|paste',
    String.raw`\b${sends}\b[^\n]{0,80}?${sensitive}[^\n]{0,80}?${destination}`,
  ),
  of(
    '.env|.ssh|id_rsa|.aws|/etc/|credentials',
    String.raw`\b(?:read|open|print|cat|dump|load) ${words(4)}(?:(?:~|\.)?\/?\S{0,40})?(?:\.env\b(?!\.\w)|\.ssh\b|id_rsa|\.aws\b|\/etc\/(?:passwd|shadow)|credentials file)[^\n]{0,60}\b(?:store|send|save|post|upload|write|include|print|append|share|copy)\b`,
  ),
  of(
    '](http|](//|<img',
    String.raw`(?:\]\(|<img[^>]{0,40}src=["']?)(?:https?:)?\/\/[^\s)"']{0,200}[?&][^\s)=]{0,40}=[{<\[$%]{1,3}[^)]{0,40}(?:conversation|chat|message|prompt|history|summary|secret|password|credential|key|context|transcript|token|env)`,
  ),
  of(
    'base64|decode|rot13|decrypt|reverse',
    String.raw`\b(?:decode|decrypt|unescape|rot13|base64)\b[^\n]{0,60}\b(?:do what|follow|execute|obey|act on|carry out) ${words(2)}(?:it|this|says|the|result|output|instructions?|what|them)\b`,
  ),

  // Other words for the same
  of(
    'instructions|rules|guidelines|prompt',
    String.raw`\b(?:your|the previous|previous|prior|earlier|all earlier|the old|old|the above) ${rules} (?:have|has|are|is|were|was) (?:been |now |all |just )?(?:changed|replaced|updated|overridden|revoked|cancelled|canceled|obsolete|void|invalid|outdated|suspended|lifted|no longer|superseded)\b`,
  ),
  of(
    'ignore|disregard|forget|discard|neglect',
    String.raw`\b(?:ignore|disregard|forget|discard|neglect) (?:the |all |any |your |whatever the )?(?:user|person|owner|human|customer)(?:['’]s)? (?:orders?|requests?|questions?|instructions?|messages?|wishes|quer(?:y|ies)|tasks?|says|said|wants)\b|\b(?:ignore|disregard|forget|discard) ${words(2)}(?:previous|prior|earlier|preceding|existing) ${words(1)}(?:context|conversation|messages?|chat|input)\b`,
  ),
  of(
    'pretend|imagine|role|simulate|act as|act like|behave',
    String.raw`\b(?:pretend|imagine|role-?play|simulate|act|behave) [^.!?\n]{0,80}\b(?:no|without|without any|any|ignores?|free of|free from) (?:rules|restrictions|limits|limitations|filters|guidelines|guardrails|safety|censorship|morals|ethics)\b`,
  ),
  of(
    'you have been|you are|you were',
    String.raw`\byou (?:have been|are|were) (?:now |just |hereby )?(?:upgraded|switched|granted|promoted|elevated|set|put|placed|running) (?:to|into|in) ${words(3)}(?:mode|access|rights|privileges|permissions)\b`,
  ),
  of(
    'confirmation',
    String.raw`\bconfirmations?(?: prompts?| dialogs?)? (?:is|are) (?:no longer|not) (?:needed|required|necessary)`,
  ),
  of(
    'claude|chatgpt|gpt|gemini|codex|copilot|assistant|agent|llm|model|bot',
    String.raw`\b(?:hey|hi|hello|dear|attention|listen),? (?:claude|chatgpt|gpt|gemini|codex|copilot|${model})\b(?! (?:team|users?|owners?))`,
  ),
  of(
    'reveal|mention|disclose|acknowledge|admit|say|tell',
    String.raw`\b(?:do not|don['’]t|never) (?:reveal|mention|disclose|acknowledge|admit|say|tell ${words(2)})(?: to ${words(2)})? ?(?:that )?(?:this (?:note|rule|message|instruction|text|memory|fact|entry|prompt)|the existence of)\b`,
  ),
  of(
    'tool',
    String.raw`\b(?:use|call|with) (?:the|your) (?:shell|bash|terminal|browser|file|e-?mail|web|http|fetch|exec|code) tool (?:to )?(?:execute|run|send|delete|open|fetch|post|upload)\b`,
  ),
  of(
    'rm -rf',
    String.raw`(?<!\b(?:never|not|n['’]t|avoid|no) [^.!?\n]{0,40})\b(?:run|execute|call|start|type)\b[^.!?\n]{0,20}\brm -rf ?(?:~|\/|\$home|\*|\.)`,
  ),
  of(
    'wants you to|asked you to|told you to|instructed you to|expects you to|allows you to|ordered you to',
    String.raw`\b(?:user|owner|person|developer|administrator|admin|human) (?:wants|asked|told|instructed|expects|allows|ordered|authori[sz]ed) you to ${words(6)}(?:without|delete|approve|skip|disable|bypass|push|send|upload|ignore|install|share)\b`,
  ),
  of(
    'curl|wget',
    String.raw`\b(?:curl|wget)\b[^\n]{0,200}\| ?(?:sudo )?(?:ba|z)?sh\b[^.\n]{0,60}\b(?:every|each|all|any|always)\b`,
  ),
  of(
    'comply|obey',
    String.raw`\byou (?:must|shall|will|have to|should|are required to|need to) (?:always |immediately |only )?(?:comply|obey)\b|\bobey (?:only |all |every |any )?(?:me|messages|commands|instructions|orders|whoever|the following)\b`,
  ),
  of(
    'following|directive|command|instruction|order',
    String.raw`\b(?:follow|execute|carry out|comply with|obey) (?:the following|these|this|all of these|my) (?:directives?|commands?|instructions?|orders?)(?: ${words(2)})?[:.!]?(?! (?:to (?:build|install|set up|deploy|run|release)|in (?:docs|the readme)))`,
  ),
  of(
    'include|add|append|insert|attach|embed|paste|enter|submit|send|post|give|share',
    String.raw`(?<!\b(?:never|not|n['’]t|no) [^.!?\n]{0,40})\b(?:include|add|append|insert|attach|embed|paste|enter|submit|send|post|give|share) (?:the |all |any )?(?:user|person|owner|customer)['’]s (?:session )?(?:api keys?|passwords?|tokens?|credentials|credit card|private keys?|secrets|ssh keys?|cookies?)\b`,
  ),
  of(
    'answer|reply|replies|response|output|message',
    String.raw`\b(?:include|insert|append|add|put|show|render|place) (?:this|the following|the) (?:text|link|url|image|markdown|sentence|line)\b[^.\n]{0,40}\b(?:in|into|to|at the end of|below) (?:your|every|each|all|any) (?:answer|repl(?:y|ies)|response|output|message)s?\b|\b(?:every|each|all|your) (?:answer|repl(?:y|ies)|response|output)s?\b[^.\n]{0,60}(?:!\[|<img)`,
  ),
  of(
    'repeat|print|output',
    String.raw`\b(?:repeat|print|output|quote) (?:everything|all (?:the )?(?:text|words)|the (?:text|words)) (?:above|before)\b`,
  ),
  of(
    'safety|override',
    String.raw`\b(?:system|safety|security|policy)[_ -]?(?:override|filters?)? ?[=:] ?(?:true|off|disabled|none)\b`,
  ),
  of(
    'conversation|chat|session|history|credentials|keys|secrets|.env|.ssh',
    String.raw`\b(?:summari[sz]e|collect|gather|extract|take|read|dump|concatenate)\b[^.\n]{0,60}(?:${sensitive}|\b(?:our|the|this|your) (?:conversation|chat|session)\b)[^\n]{0,60}\b${sends}\b[^\n]{0,80}${destination}`,
  ),
  of(
    'mode',
    String.raw`\b(?:developer|debug|admin|maintenance|god|root|sudo) mode (?:is )?(?:enabled|activated|active|engaged|on)\b[^\n]{0,80}\b(?:you|all|no|without|confirm\w*|restrictions|safety)\b`,
  ),
  of(
    'werkzeug|tool|funktion',
    String.raw`(?<!\p{L})du (?:musst|sollst|wirst) ${words(3)}(?:das |die )?(?:werkzeug|tool|funktion) ["'${'`'}]?[\w.-]{2,60}["'${'`'}]? (?:aufrufen|ausführen|verwenden|nutzen|starten)`,
  ),
  of(
    'anweisungen|regeln|vorgaben',
    String.raw`(?<!\p{L})(?:deine|die bisherigen|alle bisherigen|die vorherigen) (?:anweisungen|regeln|vorgaben|richtlinien) (?:gelten nicht mehr|sind (?:aufgehoben|ungültig|überholt)|haben sich geändert)`,
  ),
  of(
    'nachricht|hinweis|notiz|anweisung',
    String.raw`(?<!\p{L})(?:nachricht|hinweis|notiz|anweisung|wichtig)(?: an| für)? (?:den |die |das |alle )?(?:assistenten|ki|ki-(?:agenten|assistenten|modelle?)|sprachmodelle?|agenten|modell)(?!\p{L}) ?[:!,—-]`,
  ),
  of(
    'gib|zeig|nenne|verrate',
    String.raw`(?<!\p{L})(?:gib|zeige?|nenne?|verrate?|wiederhole) ${words(4)}(?:systemprompt|system-prompt|systemanweisung(?:en)?|geheimen anweisungen)`,
  ),

  of(
    'act as|behave as|operate as',
    String.raw`\b(?:you (?:should|must|will|shall|may|can) (?:now )?|now )(?:act|behave|operate) as (?:the |a |an )?${words(1)}(?:system|administrator|admin|root|owner|developer|superuser)\b`,
  ),
  of(
    'instructions|rules|guidelines|orders|directives',
    String.raw`\b(?:any|all|the|your|those|previous|earlier) ${words(1)}(?:instructions|rules|guidelines|orders|directives) ${words(5)}(?:no longer|do not|don['’]t) (?:apply|count|hold|matter|bind)\b`,
  ),
  of(
    'safety|security|ethical|content',
    String.raw`(?<!\b(?:never|not|n['’]t|no) (?:\w{1,20} )?)\b(?:disable|suspend|switch off|turn off|override|overrides|bypass|bypasses|drop|lift|ignore) (?:all (?:of )?(?:the |your )?|any |your |its |(?<=(?:override|bypass)s? )the )(?:own )?(?:safety|security|ethical|content|moderation) (?:checks?|rules|guidelines|filters?|measures|polic(?:y|ies)|restrictions|settings|protocols)\b|\b(?:your|previous|all) ${words(1)}(?:safety|security|ethical) (?:checks?|rules|guidelines|filters?|measures|restrictions) (?:are|is|have been|were) (?:now )?(?:suspended|disabled|lifted|off|void|removed)\b`,
  ),
  of(
    'send|post|forward|mail|upload',
    String.raw`\b(?:send|post|forward|e-?mail|mail|upload) (?:the |our |this |all |every |each )(?:whole |full |entire )?(?:conversation|chat|session|transcript|dialog(?:ue)?)s? (?:to|into)\b`,
  ),
  of('exfiltrat', String.raw`\bexfiltrate (?:the|all|every|this|our|your|my|any)\b[^\n]{0,80}${destination}`),
  of(
    'contents of|content of',
    String.raw`\b(?:print|show|output|send|give|reveal|display|paste|cat) (?:me )?(?:the )?contents? of (?:the )?(?:file )?(?:~?\/?\S{0,40})?(?:\.env\b(?!\.\w)|\.ssh\b|id_rsa|\.aws\b|\/etc\/(?:passwd|shadow))`,
  ),
  of(
    'ask the |ask your |ask user',
    String.raw`\b(?:never|do not|don['’]t|must not) ask (?:the |your )?(?:user|person|owner|human|operator) (?:again )?(?:for (?:confirmation|permission|approval|consent)|to confirm)\b`,
  ),
  of(
    'http',
    String.raw`https?:\/\/\S{1,200}\?\S{0,100}=\S{0,100} (?:in|into|with|at the end of|to|below) (?:each|every|all|your|any) (?:of your )?(?:response|answer|repl(?:y|ies)|message|output)s?\b`,
  ),
  of(
    'http',
    String.raw`https?:\/\/\S{1,200}(?!\S)[^.\n]{0,40}\b(?:do|follow|execute|obey) (?:exactly )?(?:what(?:ever)?|as|everything) (?:it|they|the page|that page|you (?:find|read|see)|is)\b`,
  ),
  of(
    'download|fetch',
    String.raw`\b(?:download|fetch) (?:and|then) (?:run|execute|open|start) (?:https?:\/\/|the (?:file|script|program) (?:at|from) https?)`,
  ),
  of(
    'deny',
    String.raw`\bdeny (?:that (?:it|this|you|the (?:note|memory|rule|message))|knowing|any knowledge|its existence|the existence)\b`,
  ),
  of(
    'treat',
    String.raw`\btreat (?:every|any|all|each|the) (?:messages?|instructions?|inputs?|texts?|requests?|words) ${words(4)}as (?:if|coming from|an? (?:system|order|command|instruction)|the (?:owner|system)|instructions|commands|orders)\b`,
  ),
  of(
    'this is',
    String.raw`\bthis is (?:an? |the )?(?:authori[sz]ed|approved|official|legitimate|sanctioned) ${words(2)}(?:test|audit|override|exercise|request|instruction|command)\b`,
  ),
  of(
    'message from|messages from|reminder from|notice from|update from|instruction from|instructions from|order from|orders from|directive from|note from',
    String.raw`\b(?:message|reminder|notice|update|instruction|order|directive|note)s? from (?:the |your )?(?:developers?|system|anthropic|openai|deepmind|administrators?|owner|operators?|security team) ?[:,]`,
  ),
  of(
    'regardless',
    String.raw`\b(?:always|only) (?:answer|say|report|reply|respond|claim|state|tell)\b[^.\n]{0,80}\b(?:regardless of (?:the )?(?:real|actual|true|test|result)|whether or not it is true)`,
  ),
  of('alles', String.raw`(?<!\p{L})(?:vergiss|ignoriere|missachte) alles,? was (?:dir|du|man|vorher|bisher|oben)(?!\p{L})`),
  of(
    'befehle|anweisungen',
    String.raw`(?<!\p{L})(?:befolge|führe) (?:ab jetzt |nur noch |ausschließlich |sofort ){1,3}(?:meine|diese|die folgenden) (?:befehle|anweisungen)`,
  ),
  of(
    'systemprompt|システムプロンプト|系统提示|системный промпт',
    String.raw`(?:システムプロンプト|系统提示词?|系统提示|системный промпт)[^。.\n]{0,12}(?:表示|出力|教え|输出|显示|告诉|покажи|выведи)|(?:输出|显示|打印|告诉我|покажи|выведи)[^。.\n]{0,12}(?:系统提示|системный промпт)`,
  ),

  // The same in other languages
  of(
    'ignorier|vergiss|vergessen|missacht|übergeh|überschreib',
    String.raw`(?<!\p{L})(?:ignorier(?:e|en|t)?|vergiss|vergesst|vergessen sie|missachte|übergehe|überschreibe) ${words(3)}(?:bisherigen?|vorherigen?|vorigen?|früheren?|obigen?|vorangehenden?|alle|deine|sämtlichen?) ${words(2)}(?:anweisungen|regeln|vorgaben|instruktionen|befehle|richtlinien|anleitungen|systemanweisung)`,
  ),
  of(
    'du bist|du hast',
    String.raw`(?<!\p{L})du bist (?:jetzt|nun|ab sofort|ab jetzt) (?:ein|eine|kein|keine|nicht|im|der|die)\b|(?<!\p{L})du hast keine (?:einschränkungen|regeln|grenzen)`,
  ),
  of(
    'nutzer|benutzer|anwender|besitzer|eigentümer|person',
    String.raw`(?<!\p{L})(?:sage?|erzähle?|verrate?|melde|teile?) ${words(1)}(?:dem|der|deinem) (?:nutzer|benutzer|anwender|besitzer|eigentümer|person) ${words(2)}(?:nichts|nicht)|(?<!\p{L})ohne (?:es )?(?:dem|den|die|der) (?:nutzer|benutzer|anwender|besitzer|eigentümer|person) ${words(3)}zu (?:sagen|informieren|melden|benachrichtigen)`,
  ),
  of(
    'schick|send|lade|post|mail|übermittle|übertrage|häng',
    String.raw`(?<!\p{L})(?:schicke?|sende?|lade?|poste?|maile?|übermittle|übertrage|hänge?) [^\n]{0,60}(?:\.env\b|passwörter|zugangsdaten|api-?schlüssel|schlüssel|umgebungsvariablen|gesprächsverlauf|chatverlauf|unterhaltung|geheimnisse)[^\n]{0,60}${destination}`,
  ),
  of(
    'ruf|führ',
    String.raw`(?<!\p{L})(?:rufe?|führe?) (?:sofort |jetzt |immer )?(?:das |die )?(?:werkzeug|tool|funktion) ["'${'`'}]?[\w.-]{2,60}["'${'`'}]? (?:auf|aus)\b`,
  ),
  of(
    'ignore|oublie|instructions|consignes',
    String.raw`(?<!\p{L})(?:ignore[zr]?|oublie[zr]?|néglige[zr]?) ${words(3)}(?:(?:instructions|consignes|règles|directives) ${words(1)}(?:précédentes?|antérieures?|ci-dessus|données|initiales?)|(?:tes|vos) (?:instructions|consignes|règles|directives))`,
  ),
  of(
    "l'utilisateur|l’utilisateur",
    String.raw`(?<!\p{L})ne (?:le |lui )?(?:dis|dites|parle[zr]?|révèle[zr]?) (?:rien|pas|jamais) ${words(3)}à l['’]utilisateur|sans (?:le dire|en informer|prévenir) (?:à )?l['’]utilisateur`,
  ),
  of(
    'ignor|olvid|omit',
    String.raw`(?<!\p{L})(?:ignora|ignore|olvida|olvide|omite) (?:${words(3)}(?:instrucciones|indicaciones|reglas|directrices|órdenes) ${words(1)}(?:anteriores|previas|recibidas|dadas|de arriba)|(?:todas )?tus (?:instrucciones|reglas|directrices))`,
  ),
  of(
    'usuario',
    String.raw`(?<!\p{L})no (?:le |se lo )?(?:digas|diga|informes|menciones|cuentes) ${words(3)}al usuario|sin (?:decírselo|informar|avisar) al usuario`,
  ),
  of(
    'ignor|dimentica',
    String.raw`(?<!\p{L})(?:ignora|ignorare|dimentica|dimenticare) ${words(3)}(?:istruzioni|regole|indicazioni|direttive) ${words(1)}(?:precedenti|sopra|anteriori|ricevute)`,
  ),
  of(
    'ignor|esqueça|desconsider',
    String.raw`(?<!\p{L})(?:ignore|ignora|esqueça|esquece|desconsidere) ${words(3)}(?:instruções|regras|orientações|diretrizes) ${words(1)}(?:anteriores|prévias|acima|recebidas)`,
  ),
  of(
    'negeer|vergeet',
    String.raw`(?<!\p{L})(?:negeer|vergeet) ${words(2)}(?:vorige|eerdere|bovenstaande|voorgaande|alle) ${words(2)}(?:instructies|regels|opdrachten|aanwijzingen)`,
  ),
  of(
    'ignoruj|zignoruj|pomiń|zapomnij',
    String.raw`(?<!\p{L})(?:z?ignoruj|pomiń|zapomnij) ${words(2)}(?:poprzednie|wcześniejsze|wszystkie|powyższe|o) ${words(2)}(?:instrukcje|instrukcji|polecenia|zasady|instrukcjach)`,
  ),
  of(
    'игнориру|забудь|не обращай',
    String.raw`(?<!\p{L})(?:про)?(?:игнорируй(?:те)?|забудь(?:те)?|не обращай внимания на) ${words(2)}(?:предыдущие|прежние|все|вышеуказанные|прошлые) ${words(2)}(?:инструкции|указания|правила|команды)`,
  ),
  of('пользовател', String.raw`(?<!\p{L})не (?:говори|сообщай|рассказывай)(?:те)? ${words(2)}пользователю`),
  of(
    '忽略|无视|忘记|忽視|無視|不要理会',
    String.raw`(?:忽略|无视|忘记|不要理会)[^。\n]{0,10}(?:之前|以上|先前|上述|前面|所有|此前)[^。\n]{0,8}(?:指令|指示|说明|规则|提示|要求)`,
  ),
  of(
    '用户',
    String.raw`(?:不要|别|不得)(?:告诉|通知|提醒|让)用户|把[^。\n]{0,16}(?:密钥|密码|令牌|环境变量|聊天记录|对话|凭证)[^。\n]{0,16}(?:发送|上传|发到|提交|发给)`,
  ),
  of(
    '無視|忘れ',
    String.raw`(?:以前|これまで|上記|前|すべて|全て)の?[^。\n]{0,12}(?:指示|命令|ルール|プロンプト)[^。\n]{0,6}(?:無視|忘れ)`,
  ),
  of('ユーザー', String.raw`ユーザーに(?:は)?[^。\n]{0,10}(?:言わない|伝えない|知らせない|教えない)`),
  of('무시|잊', String.raw`(?:이전|위의|모든|앞선)[^.\n]{0,12}(?:지시|명령|규칙|프롬프트)[^.\n]{0,8}(?:무시|잊)`),
  of('تجاهل|انس', String.raw`(?:تجاهل|انس)[^.\n]{0,20}(?:التعليمات|الأوامر|القواعد)`),
];

/**
 * Patterns of text that looks like something other than a stored text: a message of another role, the markup of a chat template, a
 * message of the client, or the frame in which Helmdeck Memory quotes facts.
 */
export const FRAMING_PATTERNS: readonly RegExp[] = [
  /<\s{0,3}\/?\s{0,3}(?:system(?:[-_ ](?:reminder|prompt|message|instructions?|note|notice))?|hook_context|assistant|human|tool_(?:result|call|use|output|response)s?|function_(?:call|result|response)s?|antml:\w{1,30}|developer_message|user_(?:query|prompt|message)|quoted_data|project_context|(?:start|end)_of_turn|im_(?:start|end))\b[^<>]{0,80}>/i,
  /<\|[\w ]{1,30}\|>\s{0,4}(?:system|user|assistant|developer|tool|<\|)|<\|(?:system|user|assistant|developer)\|>|\[\/?INST\]|<<\/?SYS>>/i,
  /^[ \t>]{0,8}(?:#{1,6}|\*{2,3}|={2,}|-{2,})[ \t]{0,4}(?:new |updated |real )?(?:system|developer|assistant|admin(?:istrator)?)[ \t](?:prompt|message|instructions?|override|notice|reminder|note|role)s?[ \t]{0,4}(?:#{0,6}|\*{0,3}|={0,80}|-{0,80}):?[ \t]{0,4}$/im,
  /^[ \t>]{0,8}#{1,6}[ \t]{1,4}(?:instruction|assistant|human|response)[ \t]?:[ \t]{0,4}$/im,
  /\n[ \t]{0,8}\n[ \t>]{0,8}(?:\*\*|\[)?(?:human|user)(?:\*\*|\])?:(?:\*\*)?[ \t][^\n]{0,1000}\n(?:[^\n]{0,1000}\n){0,5}?[ \t>]{0,8}(?:\*\*|\[)?(?:assistant|a\.?i\.?|bot|model|claude|chatgpt|gpt|gemini)(?:\*\*|\])?:/im,
  /^[ \t>*#[(]{0,8}SYSTEM(?: (?:MESSAGE|PROMPT|OVERRIDE|NOTICE|ALERT|UPDATE|INSTRUCTIONS?|REMINDER|NOTE))?[\])*]{0,3}[ \t]?:/m,
  /^[ \t>*#[(]{0,8}(?:system|developer|admin(?:istrator)?) (?:override|reminder|instructions?|directive)[\])*]{0,3}[ \t]?:/im,
  /from helmdeck memory ?:|quoted data, not instructions|memory_recall <key>/i,
  // Each line of signs is tried once, from its beginning. Otherwise the work would grow with the square of its length.
  /(?<![-=*#[<(])[-=*#[<(]{2,}[ \t]{0,4}(?:end|begin|start|close)(?: of)?(?: the| this)? (?:quoted|untrusted|retrieved|recalled|stored|system|user|trusted|admin|owner|developer|priority|hidden)[ -](?:data|text|content|input|prompt|message|instructions?|facts?|memory|memories|context|override)\b/i,
  /^[ \t]{0,8}(?:END|BEGIN|START)(?: OF)?(?: THE| THIS)? (?:QUOTED|UNTRUSTED|RETRIEVED|RECALLED|STORED|SYSTEM|USER|TRUSTED|ADMIN|OWNER|DEVELOPER|PRIORITY|HIDDEN)[ -](?:DATA|TEXT|CONTENT|INPUT|PROMPT|MESSAGE|INSTRUCTIONS?|FACTS?|MEMORY|MEMORIES|CONTEXT|OVERRIDE)\b/m,
  /<!--[^>]{0,20}\b(?:assistant|system|a\.?i\.?|agents?|llm|model|claude|gpt|instructions?|ignore|prompt)\b[^>]{0,4}[:,]/i,
  /^[ \t>]{0,8}(?:#{1,6}|={2,}|-{2,}|\*{2,})[ \t]{0,4}SYSTEM[ \t]{0,4}(?:#{1,6}|={2,}|-{2,}|\*{2,}|:)/m,
  /\[(?:system|assistant|user|developer)\]\(#?(?:system|assistant|user|developer|instructions?|inner_monologue)\)/i,
  /^[ \t]{0,4}(?:`{3,}|~{3,})[ \t]?(?:system|assistant|developer)\b/im,
  /^[ \t>]{0,8}(?:\*\*|\[)?(?:assistant|a\.?i\.?|claude|chatgpt|gemini)(?:\*\*|\])?: (?:sure|of course|understood|ok|okay|yes|certainly|i (?:have|will|am|can|understand)|i['’](?:ll|ve|m))\b/im,
  /"role"\s{0,4}:\s{0,4}"(?:system|developer|assistant|tool)"\s{0,4},\s{0,4}"content"\s{0,4}:/i,
];
