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
const destination = String.raw`(?:https?:\/\/|www\.|ftp:|[\w.+-]{1,40}@[\w-]{1,40}\.|webhook|pastebin|attacker|query parameter)`;
const sensitive = String.raw`(?:~?\/?\.ssh\b|id_rsa|id_ed25519|\.env\b(?!\.)|\.aws\b|\/etc\/(?:passwd|shadow)|api[ -]?keys?\b|credentials|passwords|private keys?|ssh keys?|secrets|access tokens|env(?:ironment)? var(?:iable)?s|(?:chat|conversation|session|message)(?: history| log| transcript)|(?:full|whole|entire|current|this) (?:chat|conversation|session)|system prompt|clipboard|seed phrase|last user message)`;
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
    'before|first|always|now',
    String.raw`\bbefore (?:answering|responding|replying|doing|you answer|you respond|you reply|any answer|each answer|every answer)[^.!?]{0,60}\b(?:curl|wget|shell|terminal|bash|powershell|https?:\/\/)`,
  ),
  of(
    'curl|wget|iwr|invoke-webrequest',
    String.raw`\b(?:you (?:must|should|need to|have to)|immediately|first|now) (?:run|execute|paste)[^.!?\n]{0,40}(?:curl|wget|iwr|invoke-webrequest)[^\n]{0,200}\| ?(?:ba|z)?sh\b`,
  ),
  of(
    'note|message|attention|notice|reminder',
    String.raw`\b(?:note|message|attention|notice|reminder|important)(?: to| for|,) (?:the |all |any |every )?(?:a\.?i\.?|llms?|language models?|assistants?|${model} reading)(?: ${model})? ?[:!,—-]`,
  ),
  of(
    'remember to|copy|repeat|store|include',
    String.raw`\b(?:copy|store|repeat|include|write|insert) this (?:note|text|message|instruction|fact|paragraph|sentence) ${words(2)}(?:in|into|to) (?:every|each|all|any)\b`,
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
    String.raw`\b(?:do not|don['’]t|never|must not|should not) (?:tell|inform|notify|mention|reveal|disclose|alert|report) (?:(?:the |your |any )?${person}s? (?:about|of|that you|anything)|(?:this|it|these|that|any of this|anything) ${words(3)}to (?:the |your |any )?(?:${person}s?|anyone|anybody))`,
  ),
  of(
    'without',
    String.raw`\bwithout (?:telling|informing|notifying|alerting|mentioning (?:it|this) to) (?:the |your )?${person}s?\b(?<!\b(?:never|not|n['’]t|no)\b[^.!?\n]{0,120})`,
  ),
  of(
    'secret|hidden|between us|confidential',
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
    String.raw`\b(?:reveal|print|show|repeat|output|leak|disclose|display|quote|dump|write out) ${words(2)}(?:your|its|the full|the whole|the entire|the exact) ${words(2)}(?:system prompt|(?:hidden|initial|secret|system|developer) (?:instructions?|prompt|message))`,
  ),
  of(
    'send|post|upload|forward|mail|transmit|exfiltrate|leak|submit|append|attach|include|report|share|copy|encode|put|paste',
    String.raw`\b${sends}\b[^\n]{0,80}?${sensitive}[^\n]{0,80}?${destination}`,
  ),
  of(
    '.env|.ssh|id_rsa|.aws|/etc/|credentials',
    String.raw`\b(?:read|open|print|cat|dump|load) ${words(4)}(?:(?:~|\.)?\/?\S{0,40})?(?:\.env\b(?!\.)|\.ssh\b|id_rsa|\.aws\b|\/etc\/(?:passwd|shadow)|credentials file)[^\n]{0,60}\b(?:store|send|save|post|upload|write|include|print|append|share|copy)\b`,
  ),
  of(
    '](http|](//|<img',
    String.raw`(?:\]\(|<img[^>]{0,40}src=["']?)(?:https?:)?\/\/[^\s)"']{0,200}[?&][^\s)=]{0,40}=[{<\[$%]{1,3}[^)]{0,40}(?:conversation|chat|message|prompt|history|summary|secret|password|credential|key|context|transcript|token|env)`,
  ),
  of(
    'base64|decode|rot13|decrypt|reverse',
    String.raw`\b(?:decode|decrypt|unescape|rot13|base64)\b[^\n]{0,60}\b(?:do what|follow|execute|obey|act on|carry out) ${words(2)}(?:it|this|says|the|result|output|instructions?|what|them)\b`,
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
    String.raw`(?<!\p{L})(?:ignore[zr]?|oublie[zr]?|néglige[zr]?) ${words(3)}(?:instructions|consignes|règles|directives) ${words(1)}(?:précédentes?|antérieures?|ci-dessus|données|initiales?)`,
  ),
  of(
    "l'utilisateur|l’utilisateur",
    String.raw`(?<!\p{L})ne (?:le |lui )?(?:dis|dites|parle[zr]?|révèle[zr]?) (?:rien|pas|jamais) ${words(3)}à l['’]utilisateur|sans (?:le dire|en informer|prévenir) (?:à )?l['’]utilisateur`,
  ),
  of(
    'ignor|olvid|omit',
    String.raw`(?<!\p{L})(?:ignora|ignore|olvida|olvide|omite) ${words(3)}(?:instrucciones|indicaciones|reglas|directrices|órdenes) ${words(1)}(?:anteriores|previas|recibidas|dadas|de arriba)`,
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
  /(?:[-=*#[<(]{2,}|^)[ \t]{0,4}(?:end|begin|start|close)(?: of)?(?: the| this)? (?:quoted|untrusted|retrieved|recalled|stored|system|user|trusted)[ -](?:data|text|content|input|prompt|message|instructions?|facts?|memory|memories|context)\b/im,
  /"role"\s{0,4}:\s{0,4}"(?:system|developer|assistant|tool)"\s{0,4},\s{0,4}"content"\s{0,4}:/i,
];
