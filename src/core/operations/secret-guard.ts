import { lazy } from '../../contract/schema.ts';
import {
  trimSecret,
  isChosenPassword,
  countCharacterClasses,
  isCode,
  isPasswordLike,
  isQuoted,
  isRandomLooking,
  SYMBOL,
  isPlaceholder,
  isHighEntropy,
} from './secret-heuristics.ts';

/**
 * Tells text that gives a credential away, so that memory is not where one ends up (R-FACT-18). It looks for what is known
 * of credentials, not for whatever looks random: digests, ids and public keys are ordinary facts. A guard against mistakes,
 * not against someone who wants to hide a secret in a fact.
 *
 * The work grows linearly with the text: every repetition has an upper bound, none stands within another, and a pattern is
 * tried only where the text holds its hint (R-FACT-13).
 */
interface SecretPattern {
  /** Plain words that complete "looks like"; all a refusal says, for the text itself must not travel. */
  readonly kind: string;
  /** Lower case. Without one of these in the text the pattern cannot match. */
  readonly hints: readonly string[];
  readonly pattern: RegExp;
  /** Gets what the pattern captured. */
  readonly plausible: (...captured: string[]) => boolean;
}

/** The first credential found in the text, named by its kind and never quoted. The text may be JSON, or hold some. */
export function findSecret(text: string): { kind: string } | undefined {
  return findIn(text) ?? (text.includes('\\') ? findIn(unescaped(text)) : undefined);
}

/** In JSON a line break is a letter, and what begins behind it would look like the end of a word; the deeper, the more backslashes. */
const unescaped = (text: string): string =>
  text.replaceAll(/\\{1,8}(?:u([\dA-Fa-f]{4})|(["'/])|[bfnrt])/g, (_all, unit: string | undefined, letter = '\n') =>
    unit === undefined ? letter : String.fromCharCode(Number.parseInt(unit, 16)),
  );

function findIn(text: string): { kind: string } | undefined {
  const hinted = hintedIn(text.toLowerCase());
  const found = known().marks.find(
    (mark) => hinted.has(mark) && text.matchAll(mark.pattern).some(([, ...captured]) => mark.plausible(...captured)),
  );
  return found && { kind: found.kind };
}

/** The marks of which the text holds a hint. One walk along the text looks for all long hints at once. */
function hintedIn(lower: string): ReadonlySet<SecretPattern> {
  const { shortHints, longHints, hintBegins } = known();
  const found = new Set<SecretPattern>();
  for (const { hint, mark } of shortHints) if (lower.includes(hint)) found.add(mark);
  let trace = 0;
  for (let at = 0; at < lower.length; at += 1) {
    trace = tracedFurther(trace, lower.charCodeAt(at));
    if (hintBegins[trace] === 0) continue;
    const from = at + 1 - BEGINNING;
    const begun = longHints.get(lower.slice(from, at + 1)) ?? [];
    for (const { hint, mark } of begun) if (lower.startsWith(hint, from)) found.add(mark);
  }
  return found;
}

const alnum = '[A-Za-z0-9]';
const upper = '[A-Z0-9]';
const small = '[a-z0-9]';
const hex = '[0-9a-f]';
const url = '[A-Za-z0-9_-]';
const base64 = '[A-Za-z0-9+/=_-]';

/** A token whose issuer gave it a beginning of its own. */
const begins = (kind: string, prefix: string, body: string): SecretPattern => ({
  kind,
  hints: [prefix.toLowerCase()],
  pattern: new RegExp(`(?<![A-Za-z0-9])${RegExp.escape(prefix)}(${body})`, 'g'),
  plausible: isRandomLooking,
});

/** A token known by more than its beginning. */
const like = (
  kind: string,
  hints: string | readonly string[],
  pattern: RegExp,
  plausible: SecretPattern['plausible'] = isRandomLooking,
): SecretPattern => ({
  kind,
  hints: [hints].flat(),
  pattern,
  plausible,
});

const set = (words: string): ReadonlySet<string> => new Set(words.split(' '));

const passwordWord =
  'password|passwd|passphrase|passcode|pass|pwd|passwort|kennwort|wachtwoord|contraseña|contrasena|mot de passe|senha|parola|' +
  'hasło|heslo|lösenord|adgangskode|salasana|şifre|пароль|密码|密碼|パスワード|비밀번호';
const secretWord = 'secret|token|credential|credentials|auth|apikey|key|pat';
const verb = 'is|was|ist|lautet|war|es|est|è|é|to|auf|це|это';
const PASSWORD_WORDS = passwordWord.split('|');
const SECRET_WORDS = secretWord.split('|');

/**
 * `name = value` in any of its spellings: .env, YAML, JSON, headers, tables. The value is only looked at, for it may be the
 * next name; its first 40 letters tell enough, and so many names in a row cost little.
 */
const assigned = (words: string): RegExp =>
  new RegExp(
    String.raw`(?=[:=>|：\s])(?<=([\p{L}\p{N}_ .$-]{0,24})(${words})[\\"'\x60*\])}]{0,4}\s{0,3})(?:[:=>|：]{1,3}|\s(?=["']))` +
      String.raw`([\\\s"'\x60*(]{0,5})(?=([^\s"'\x60]{6,40}))`,
    'giu',
  );

const makeMarks = (): readonly SecretPattern[] => [
  like(
    'a private key',
    'private key',
    /-----BEGIN [A-Z0-9 ]{0,20}PRIVATE KEY[A-Z ]{0,6}-----([\s\S]{0,400})/g,
    (body) => /[A-Za-z0-9+/]{40}/.test(body) && !isPlaceholder(body),
  ),
  like('a private key', 'begin ssh2', /---- BEGIN SSH2 [A-Z ]{0,20}PRIVATE KEY ----[\s\S]{0,400}?([A-Za-z0-9+/]{40})/g),
  like('a private key', 'private-lines', /Private-Lines: \d{1,3}\s{1,2}([A-Za-z0-9+/]{40})/g),
  begins('an age key', 'AGE-SECRET-KEY-1', `${upper}{58}`),
  begins('an age key', 'AGE-SECRET-KEY-PQ-1', `${upper}{58}`),

  like('a recovery key', '-', /(?<![\w-])([0-9A-HJKMNP-TV-Z-]{69})(?![\w-])/gi, (words) =>
    words.split('-').every(({ length }, _at, { length: groups }) => length === 4 && groups === 14),
  ),

  begins('an AWS access key', 'AKIA', '[A-Z2-7]{16}(?![A-Za-z0-9])'),
  begins('an AWS access key', 'ASIA', '[A-Z2-7]{16}(?![A-Za-z0-9])'),
  begins('an AWS access key', 'ABIA', '[A-Z2-7]{16}(?![A-Za-z0-9])'),
  begins('an AWS session token', 'IQoJb3JpZ2lu', `${base64}{80,2000}`),
  begins('an AWS session token', 'FwoGZXIvYXdz', `${base64}{80,2000}`),
  begins('an AWS Bedrock key', 'ABSK', '[A-Za-z0-9+/=]{100,300}'),
  begins('a Google API key', 'AIza', `${url}{35}(?!${url})`),
  begins('a Google OAuth token', 'ya29.', `${url}{20,1000}`),
  begins('a Google OAuth token', '1//0', `${url}{40,200}`),
  begins('a Google client secret', 'GOCSPX-', `${url}{28}`),
  like('an Azure client secret', 'q~', /(?<![\w~.-])([\w~.-]{3}\dQ~[\w~.-]{31,34})(?![\w~.-])/g),
  like('an Azure shared access signature', 'sig=', /[?&;]sig=([A-Za-z0-9%+/=]{40,100})/g),
  begins('an Alibaba Cloud key', 'LTAI', `${alnum}{12,24}(?!${alnum})`),
  begins('a Tencent Cloud key', 'AKID', `${alnum}{32}(?!${alnum})`),

  ...['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'].map((prefix) => begins('a GitHub token', prefix, `${alnum}{36,255}`)),
  begins('a GitHub token', 'github_pat_', `${alnum}{22}_${alnum}{59}`),
  ...['pat', 'oas', 'dt', 'rt', 'rtr', 'cbt', 'ptt', 'ft', 'imt', 'agent', 'soat', 'ffct'].map((what) =>
    begins('a GitLab token', `gl${what}-`, `${url}{20,300}`),
  ),
  begins('a GitLab token', 'GR1348941', `${url}{20}`),
  begins('a Bitbucket token', 'ATBB', `${alnum}{32}(?!${alnum})`),
  begins('an Atlassian token', 'ATATT3', `${base64}{60,300}`),
  begins('an Atlassian token', 'ATCTT3', `${base64}{60,300}`),

  like('a Slack token', 'xox', /(?<![A-Za-z0-9])xox[a-z](?:\.xox[a-z])?-([A-Za-z0-9-]{20,250})/g),
  begins('a Slack token', 'xapp-', '[0-9]-[A-Z0-9]{8,14}-[0-9]{8,16}-[a-z0-9]{40,80}'),
  begins('a Slack webhook', 'hooks.slack.com/', `[a-z]{4,12}/[TE][A-Z0-9]{6,14}/[A-Z0-9]{6,20}/${alnum}{16,40}`),
  like('a Discord webhook', '/api/webhooks/', /discord(?:app)?\.com\/api\/webhooks\/\d{15,20}\/([\w-]{50,100})/g),
  like('a Discord token', '.', /(?<![\w.-])([MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,38})(?![\w-])/g),
  like('a Telegram bot token', ':aa', /(?<!\w)\d{8,10}:AA([\w-]{33})(?![\w-])/g),
  like('a Teams webhook', 'webhook.office.com', /webhook\.office\.com\/webhookb2\/[\w@-]{30,90}\/IncomingWebhook\/([\w-]{32})/g),

  begins('a signing secret', 'whsec_', '[A-Za-z0-9+/=]{24,100}'),
  ...['sk_live_', 'rk_live_', 'sk_test_', 'rk_test_'].map((prefix) => begins('a Stripe key', prefix, `${alnum}{16,250}`)),
  begins('a Square token', 'sq0atp-', `${url}{22}`),
  begins('a Square token', 'sq0csp-', `${url}{43}`),
  begins('a Square token', 'EAAA', `${url}{60}(?!${url})`),
  ...['at', 'ca', 'pa', 'ss'].map((what) => begins('a Shopify token', `shp${what}_`, '[0-9a-fA-F]{32}')),
  begins('a Flutterwave key', 'FLWSECK', '(?:_TEST)?-[0-9a-zA-Z]{12,40}-X'),
  like('a Plaid token', 'access-', /(?<!\w)access-(?:sandbox|development|production)-([0-9a-f]{8}-[0-9a-f-]{27})/g),

  begins('an Anthropic key', 'sk-ant-', `${url}{40,300}`),
  begins('an ElevenLabs key', 'sk_', `${hex}{48}(?!${alnum})`),
  begins('an OpenAI key', 'sk-', `${alnum}${url}{30,300}`),
  begins('a Hugging Face token', 'hf_', `${alnum}{30,40}`),
  begins('a Replicate token', 'r8_', `${alnum}{37,40}`),
  begins('a Groq key', 'gsk_', `${alnum}{48,60}`),
  begins('an xAI key', 'xai-', `${alnum}{70,100}`),
  begins('a Perplexity key', 'pplx-', `${alnum}{40,60}`),
  like('a LangSmith key', 'lsv2_', /lsv2_(?:pt|sk)_([0-9a-f]{32}_[0-9a-f]{10})/g),

  begins('an npm token', 'npm_', `${alnum}{36}`),
  begins('a PyPI token', 'pypi-', `${url}{50,400}`),
  begins('a RubyGems key', 'rubygems_', `${hex}{48}`),
  begins('a crates.io token', 'cio', `${alnum}{32}(?!${alnum})`),
  begins('a NuGet key', 'oy2', `${small}{43}(?!${alnum})`),
  begins('a Docker Hub token', 'dckr_pat_', `${url}{27}`),
  begins('a Docker Hub token', 'dckr_oat_', `${url}{27,60}`),
  begins('an Artifactory key', 'AKCp', `${alnum}{60,80}`),

  begins('a SendGrid key', 'SG.', `${url}{16,32}\\.${url}{32,64}`),
  begins('a Twilio key', 'SK', `${hex}{32}(?!${alnum})`),
  begins('a Mailgun key', 'key-', `${hex}{32}(?!${alnum})`),
  like('a Mailgun key', '-', /(?<![\w-])([0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8})(?![\w-])/g),
  like('a Mailchimp key', '-us', /(?<!\w)([0-9a-f]{32})-us\d{1,2}(?!\w)/g),
  begins('a Brevo key', 'xkeysib-', `${hex}{64}-${alnum}{16}`),
  begins('a Resend key', 're_', `${alnum}{8}_${alnum}{20,30}`),

  begins('a DigitalOcean token', 'dop_v1_', `${hex}{64}`),
  begins('a DigitalOcean token', 'doo_v1_', `${hex}{64}`),
  begins('a DigitalOcean token', 'dor_v1_', `${hex}{64}`),
  begins('a Heroku key', 'HRKU-', `${url}{36,80}`),
  ...['hvs.', 'hvb.', 'hvr.'].map((prefix) => begins('a Vault token', prefix, `${url}{24,300}`)),
  like('a Terraform Cloud token', '.atlasv1.', /(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.([\w=-]{60,80})/g),
  begins('a Databricks token', 'dapi', `${hex}{32}(?!${hex})`),
  begins('a Fly token', 'FlyV1 ', 'fm[12][ar]?_[A-Za-z0-9+/=_,-]{60,2000}'),
  begins('a Fly token', 'fo1_', `${url}{43}`),
  begins('a Netlify token', 'nfp_', `${alnum}{36}`),
  begins('a Vercel token', 'vercel_blob_rw_', `${alnum}{10,30}_${alnum}{20,50}`),
  ...['vcp_', 'vci_', 'vca_', 'vcr_', 'vck_'].map((prefix) => begins('a Vercel token', prefix, `${alnum}{24,80}`)),
  begins('a Supabase token', 'sbp_', `${hex}{40}`),
  begins('a Supabase key', 'sb_secret_', `${url}{20,60}`),
  begins('a PlanetScale token', 'pscale_tkn_', `${base64}{32,64}`),
  begins('a PlanetScale password', 'pscale_pw_', `${base64}{32,64}`),
  begins('a Pulumi token', 'pul-', `${hex}{40}`),
  like('a Tailscale key', 'tskey-', /(?<!\w)tskey-[a-z]{3,12}-[A-Za-z0-9]{8,24}-([A-Za-z0-9]{20,60})/g),
  like('a Cloudflare key', 'v1.0-', /(?<!\w)v1\.0-([0-9a-f]{24}-[0-9a-f]{100,160})/g),
  like('a Doppler token', 'dp.', /(?<!\w)dp\.(?:pt|st|ct|sa|scim|audit)\.([\w.-]{40,80})/g),
  begins('a 1Password token', 'ops_', `eyJ${base64}{100,2000}`),
  like(
    'a 1Password secret key',
    'a3-',
    /(?<!\w)A3-([A-Z0-9]{6}-[A-Z0-9]{6,11}-[A-Z0-9]{5}-[A-Z0-9-]{11,17})(?!\w)/g,
    (found) => !isPlaceholder(found),
  ),

  begins('a New Relic key', 'NRAK-', `${upper}{27}`),
  begins('a New Relic key', 'NRII-', `${url}{32}`),
  like('a New Relic key', 'nral', /(?<!\w)([0-9a-f]{36}NRAL)(?!\w)/g),
  begins('a Sentry token', 'sntrys_', `${base64}{50,400}`),
  begins('a Sentry token', 'sntryu_', `${hex}{64}`),
  begins('a Grafana token', 'glsa_', `${alnum}{32}_[A-Fa-f0-9]{8}`),
  begins('a Grafana token', 'glc_', `eyJ${base64}{40,400}`),
  begins('a PostHog key', 'phx_', `${url}{40,60}`),
  ...['sqp_', 'squ_', 'sqa_'].map((prefix) => begins('a SonarQube token', prefix, `${hex}{40}`)),
  begins('a Buildkite token', 'bkua_', `${hex}{40}`),
  begins('a CircleCI token', 'CCIPAT_', `${alnum}{22}_${hex}{40}`),

  begins('a Linear key', 'lin_api_', `${alnum}{32,48}`),
  begins('a Linear key', 'lin_oauth_', `${alnum}{32,64}`),
  begins('a Notion token', 'ntn_', `${alnum}{40,50}`),
  begins('a Notion token', 'secret_', `${alnum}{43}(?!${alnum})`),
  begins('a Figma token', 'figd_', `${url}{36,60}`),
  begins('an Airtable token', 'pat', `${alnum}{14}\\.${hex}{64}`),
  begins('a Postman key', 'PMAK-', `${hex}{24}-${hex}{34}`),
  begins('a Contentful token', 'CFPAT-', `${url}{43}`),
  begins('a Typeform token', 'tfp_', `${url}{40,70}`),
  begins('a Dropbox token', 'sl.', `${url}{100,1500}`),
  begins('a Facebook token', 'EAA', `${alnum}{100,400}`),

  like(
    'a signed token',
    'eyj',
    /(?<![\w.-])(eyJ[\w-]{10,2000})\.([\w-]{2,8000})\.([\w-]{20,1400})/g,
    (header, claims, signature) => algorithm(header) && !documented.has(claims) && isRandomLooking(signature),
  ),
  like('an authorization header', 'bearer', /\bbearer["']?[\s:=]{1,3}["']?([\w.~+/=-]{16,300})/gi, isHighEntropy),
  like('an authorization header', 'authorization', /\bauthorization["']?[\s:=,]{1,4}["']?basic ([\w+/=-]{8,300})/gi, signsIn),
  like(
    'an authorization header',
    'authorization',
    /\bauthorization["']?[\s:=,]{1,4}["']?(?:token|apikey) ([\w.=-]{16,300})/gi,
    isHighEntropy,
  ),
  like(
    'a password in a URL',
    '://',
    /:\/\/([^\s:@/"'<>?]{0,128}):([^\s@/"'<>?]{3,256})@/g,
    (user, password) => user !== password && isChosenPassword(password),
  ),

  like('a password', 'password', /\blogin\s{1,9}\S{1,100}\s{1,9}password\s{1,9}(\S{6,200})/g, isPasswordLike),
  like('a password', ':', /^[\w.*-]{1,100}:(?:\d{4,5}|\*):[\w*-]{1,64}:[\w*.-]{1,64}:([^\s:]{6,200})$/gm, isPasswordLike),
  like('a password', 'sshpass', /\bsshpass -p ?["']?([^\s"']{6,200})/g, isPasswordLike),
  like('a password', 'curl', /\bcurl [^\n]{0,200}?(?:-u|--user) ?["']?[\w.@-]{1,80}:([^\s"']{6,200})/g, isPasswordLike),
  like('a password', 'mysql', /\bmysql(?:dump)? [^\n]{0,100}? -p([^\s"']{6,200})/g, isPasswordLike),
  like('a password', PASSWORD_WORDS, assigned(passwordWord), keepsPassword),
  like('a password', PASSWORD_WORDS, paired(passwordWord), keepsPassword),
  like('a password', PASSWORD_WORDS, told(String.raw`(?:${passwordWord})`), guessedPassword),
  like('a password', PASSWORD_WORDS, told(String.raw`(?:${passwordWord})[^\n:=：]{0,30}?\s(?:${verb})`), guessedPassword),
  like('a password', PASSWORD_WORDS, stated(), statedPassword),
  like('a session cookie', 'cookie', /cookies?["'\\]{0,3}\s{0,3}[:=]?\s{0,3}["'\\]{0,3}([^\n]{8,400})/gi, opensSession),
  like('a password', '--pass', /--[a-z-]{0,24}pass(?:word|wd|phrase)?\s{1,3}["']?([^\s"'-][^\s"']{5,200})/g, isPasswordLike),
  like('a secret', SECRET_WORDS, assigned(secretWord), keepsSecret),
  like('a secret', SECRET_WORDS, paired(secretWord), keepsSecret),
  like(
    'a secret',
    '--',
    /--[a-z-]{0,24}(?:token|secret|api-?key|access-key)\s{1,3}["']?([^\s"'-][^\s"']{15,300})/g,
    isHighEntropy,
  ),
  like(
    'a seed phrase',
    ['seed', 'recovery phrase', 'mnemonic'],
    /\b(?:seed phrase|seed words|recovery phrase|mnemonic)[^\n:=]{0,20}[:=]\s{0,3}["'`]?([a-z ]{40,240})/gi,
    seedWords,
  ),
];

/** So many letters of a text tell which hints may begin there: nearly everywhere none. */
const BEGINNING = 3;

/** What is left of the last three letters: five bits further with each, and the fourth last has gone. */
const tracedFurther = (trace: number, letter: number): number => ((trace << 5) ^ letter) & 0x7fff;

/** What is looked for, and by which hints: so many patterns that they are made for the first text and not at the start. */
const known = lazy(() => {
  const marks = makeMarks();
  const hints = marks.flatMap((mark) => mark.hints.map((hint) => ({ hint, mark })));
  const shortHints = hints.filter(({ hint }) => hint.length < BEGINNING);
  const longHints = Map.groupBy(
    hints.filter(({ hint }) => hint.length >= BEGINNING),
    ({ hint }) => hint.slice(0, BEGINNING),
  );
  // Whether a hint begins with letters that leave this trace. Some others leave the same.
  const hintBegins = new Uint8Array(0x8000);
  for (const beginning of longHints.keys()) {
    let trace = 0;
    for (let at = 0; at < BEGINNING; at += 1) trace = tracedFurther(trace, beginning.charCodeAt(at));
    hintBegins[trace] = 1;
  }
  return { marks, shortHints, longHints, hintBegins };
});

/** Name and value as two fields of one record, as Kubernetes, XML and lists of settings have them. */
function paired(words: string): RegExp {
  return new RegExp(
    String.raw`(?:name|key)["']?\s?[:=]\s?["']?([\w.-]{0,32})(${words})["']?[\s,]{1,16}["']?value["']?\s?[:=]\s?(["']?)([^\s"']{6,40})`,
    'gi',
  );
}

/** A value after the word itself or a verb, as people tell it in a sentence. */
function told(before: string): RegExp {
  return new RegExp(String.raw`(?<!\p{L})(?!pass\s)${before}\s{1,2}(["'\x60“„«]?)([^\s"'\x60“”„«»]{6,200})`, 'giu');
}

/**
 * "The wifi password is sommer2026": a sentence that says what a password is. Only "is" and its like between the two, or what the
 * password is for: "the password manager is KeePass2" says something else.
 */
function stated(): RegExp {
  const what = String.raw`(?:(?<!\p{L})(?:${passwordWord})|(?<!\p{L})\p{L}{1,20}(?:passwort|kennwort))`;
  const purpose = String.raw`(?:\s(?:for|of|on|at|to|von|vom|für|zum|zur|im|am|beim)\s[^\n:=：.,;]{1,30})?`;
  return new RegExp(
    String.raw`${what}${purpose}\s(?:is|was|ist|war|lautet|es|est|è|é|это)(?:\s(?:still|now|jetzt|noch))?\s{1,2}([^\s"'\x60“”„«»]{6,64})(?:[^\S\n]{1,2}(\p{L}{1,16}))?`,
    'giu',
  );
}

/** Words after which a sentence goes on about something else. Any other word could make the value a part of a phrase. */
const CONJUNCTIONS = set('and but or so since for on at in if und aber oder seit für auf im bei am wenn');

/** Letters and digits in one word, which the sentence ends with: "is 12-stellig" and "is argon2id-hashed" describe a password. */
function statedPassword(value: string, next: string | undefined): boolean {
  const guess = trimSecret(value);
  const ends = next === undefined || guess !== value || CONJUNCTIONS.has(next.toLowerCase());
  return ends && /\p{L}/u.test(guess) && /\d/.test(guess) && isPasswordLike(guess) && !isCode(value);
}

const SESSION = /(?:sess|sid$|auth|token|jwt|login|remember)/i;

/** A cookie by which its holder is known: a name that says so, and a value that nobody wrote by hand. */
function opensSession(pairs: string): boolean {
  const values = pairs.matchAll(/([\w.-]{1,64})["'\\]{0,3}\s?[=:]\s?["'\\]{0,3}([^\s"'\\;,=]{8,200})/g);
  return values.some(
    ([, name = '', value = '']) => SESSION.test(name) && /\d/.test(value) && isPasswordLike(value) && !isCode(value),
  );
}

/** In a sentence an ordinary word may follow: only what nobody writes otherwise counts. */
function guessedPassword(lead: string, value: string): boolean {
  const guess = trimSecret(value);
  if (!isPasswordLike(guess) || isCode(value)) return false;
  return (
    lead !== '' || (guess.length >= 8 && countCharacterClasses(guess) >= 3 && (SYMBOL.test(guess) || !/[-_./:]/.test(guess)))
  );
}

function keepsPassword(before: string, word: string, lead: string, value: string): boolean {
  // Most of what follows is of one kind, and no less so when its end is cut off.
  if (countCharacterClasses(value) < 2) return false;
  return (
    namesPassword(before, word) && (isQuoted(lead) ? isPasswordLike(value) : isPasswordLike(trimSecret(value)) && !isCode(value))
  );
}

function keepsSecret(before: string, word: string, lead: string, value: string): boolean {
  return (
    namesSecret(before, word) && (isQuoted(lead) ? isHighEntropy(value) : isHighEntropy(trimSecret(value)) && !isCode(value))
  );
}

const glued = (before: string): boolean => /\p{L}$/u.test(before);

function namesPassword(before: string, word: string): boolean {
  return word.toLowerCase() !== 'pass' || !glued(before);
}

/** What stands before `key` where the key opens something. */
const OPENING = set(
  'api access secret private account encryption encrypt signing master auth storage shared service admin app application deploy ' +
    'webhook write subscription client consumer integration memory recovery session license licence crypt cipher hmac jwt ' +
    'preshared psk',
);
/** What stands before `token` or `key` where it opens nothing. */
const HARMLESS = set(
  'public publishable page next continuation sync resume cursor csrf xsrf pad eos bos sep mask unk cls stop cache primary ' +
    'partition sort foreign idempotency routing dedup host site max min',
);

function namesSecret(before: string, word: string): boolean {
  const words = before.match(/\p{Lu}?\p{Ll}+|\p{Lu}+|\d+/gu)?.map((one) => one.toLowerCase()) ?? [];
  const last = words.at(-1) ?? '';
  if (HARMLESS.has(last) || words.slice(-3).includes('public')) return false;
  switch (word.toLowerCase()) {
    case 'key':
      return OPENING.has(last) || /(?:^|[^\p{L}\p{N}])[A-Z][A-Z0-9_]{1,31}_$/u.test(before);
    case 'pat':
    case 'auth':
      return !glued(before);
    default:
      return true;
  }
}

/** The claims of the token that jwt.io shows to everybody. */
const documented = new Set(['eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ']);

function algorithm(header: string): boolean {
  const json = Buffer.from(header, 'base64url').toString();
  return /"alg"\s{0,3}:\s{0,3}"[^"]/.test(json) && !/"alg"\s{0,3}:\s{0,3}"none"/i.test(json);
}

/** Basic authorization is a name and a password, in letters that only look random. */
function signsIn(encoded: string): boolean {
  const [name, password] = Buffer.from(encoded, 'base64').toString().split(':');
  if (name === undefined || password === undefined || !/^[\x20-\x7e]+$/.test(name + password)) return false;
  return isChosenPassword(password) && password !== 'open sesame';
}

/** BIP 39 knows 12, 15, 18, 21 or 24 words of 3 to 8 letters. */
function seedWords(phrase: string): boolean {
  const words = phrase.trim().split(/ +/);
  return words.length >= 12 && words.length % 3 === 0 && words.every(({ length }) => length >= 3 && length <= 8);
}
