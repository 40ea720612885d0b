/** The kind of a token, the prefixes of such tokens, and the pattern of the text after a prefix. */
type PrefixedToken = readonly [kind: string, prefixes: readonly string[], body: string];

/**
 * The kind of a token, a lower-case substring that every match contains, and the pattern. The pattern's group captures the random
 * part.
 */
type ShapedToken = readonly [kind: string, hint: string, pattern: RegExp];

const alnum = '[A-Za-z0-9]';
const upper = '[A-Z0-9]';
const small = '[a-z0-9]';
const hex = '[0-9a-f]';
const url = '[A-Za-z0-9_-]';
const base64 = '[A-Za-z0-9+/=_-]';

/** Tokens that start with a prefix of their issuer. */
export const PREFIXED_TOKENS: readonly PrefixedToken[] = [
  ['an age key', ['AGE-SECRET-KEY-1', 'AGE-SECRET-KEY-PQ-1'], `${upper}{58}`],
  ['an AWS access key', ['AKIA', 'ASIA', 'ABIA'], '[A-Z2-7]{16}(?![A-Za-z0-9])'],
  ['an AWS session token', ['IQoJb3JpZ2lu', 'FwoGZXIvYXdz'], `${base64}{80,2000}`],
  ['an AWS Bedrock key', ['ABSK'], '[A-Za-z0-9+/=]{100,300}'],
  ['a Google API key', ['AIza'], `${url}{35}(?!${url})`],
  ['a Google OAuth token', ['ya29.'], `${url}{20,1000}`],
  ['a Google OAuth token', ['1//0'], `${url}{40,200}`],
  ['a Google client secret', ['GOCSPX-'], `${url}{28}`],
  ['an Alibaba Cloud key', ['LTAI'], `${alnum}{12,24}(?!${alnum})`],
  ['a Tencent Cloud key', ['AKID'], `${alnum}{32}(?!${alnum})`],
  ['a GitHub token', ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'], `${alnum}{36,255}`],
  ['a GitHub token', ['github_pat_'], `${alnum}{22}_${alnum}{59}`],
  ['a GitLab token', ['GR1348941'], `${url}{20}`],
  ['a Bitbucket token', ['ATBB'], `${alnum}{32}(?!${alnum})`],
  ['an Atlassian token', ['ATATT3', 'ATCTT3'], `${base64}{60,300}`],
  ['a Slack token', ['xapp-'], '[0-9]-[A-Z0-9]{8,14}-[0-9]{8,16}-[a-z0-9]{40,80}'],
  ['a Slack webhook', ['hooks.slack.com/'], `[a-z]{4,12}/[TE][A-Z0-9]{6,14}/[A-Z0-9]{6,20}/${alnum}{16,40}`],
  ['a signing secret', ['whsec_'], '[A-Za-z0-9+/=]{24,100}'],
  ['a Stripe key', ['sk_live_', 'rk_live_', 'sk_test_', 'rk_test_'], `${alnum}{16,250}`],
  ['a Square token', ['sq0atp-'], `${url}{22}`],
  ['a Square token', ['sq0csp-'], `${url}{43}`],
  ['a Square token', ['EAAA'], `${url}{60}(?!${url})`],
  ['a Flutterwave key', ['FLWSECK'], '(?:_TEST)?-[0-9a-zA-Z]{12,40}-X'],
  ['an Anthropic key', ['sk-ant-'], `${url}{40,300}`],
  ['an ElevenLabs key', ['sk_'], `${hex}{48}(?!${alnum})`],
  ['an OpenAI key', ['sk-'], `${alnum}${url}{30,300}`],
  ['a Hugging Face token', ['hf_'], `${alnum}{30,40}`],
  ['a Replicate token', ['r8_'], `${alnum}{37,40}`],
  ['a Groq key', ['gsk_'], `${alnum}{48,60}`],
  ['an xAI key', ['xai-'], `${alnum}{70,100}`],
  ['a Perplexity key', ['pplx-'], `${alnum}{40,60}`],
  ['an npm token', ['npm_'], `${alnum}{36}`],
  ['a PyPI token', ['pypi-'], `${url}{50,400}`],
  ['a RubyGems key', ['rubygems_'], `${hex}{48}`],
  ['a crates.io token', ['cio'], `${alnum}{32}(?!${alnum})`],
  ['a NuGet key', ['oy2'], `${small}{43}(?!${alnum})`],
  ['a Docker Hub token', ['dckr_pat_'], `${url}{27}`],
  ['a Docker Hub token', ['dckr_oat_'], `${url}{27,60}`],
  ['an Artifactory key', ['AKCp'], `${alnum}{60,80}`],
  ['a SendGrid key', ['SG.'], `${url}{16,32}\\.${url}{32,64}`],
  ['a Twilio key', ['SK'], `${hex}{32}(?!${alnum})`],
  ['a Mailgun key', ['key-'], `${hex}{32}(?!${alnum})`],
  ['a Brevo key', ['xkeysib-'], `${hex}{64}-${alnum}{16}`],
  ['a Resend key', ['re_'], `${alnum}{8}_${alnum}{20,30}`],
  ['a DigitalOcean token', ['dop_v1_', 'doo_v1_', 'dor_v1_'], `${hex}{64}`],
  ['a Heroku key', ['HRKU-'], `${url}{36,80}`],
  ['a Vault token', ['hvs.', 'hvb.', 'hvr.'], `${url}{24,300}`],
  ['a Databricks token', ['dapi'], `${hex}{32}(?!${hex})`],
  ['a Fly token', ['FlyV1 '], 'fm[12][ar]?_[A-Za-z0-9+/=_,-]{60,2000}'],
  ['a Fly token', ['fo1_'], `${url}{43}`],
  ['a Netlify token', ['nfp_'], `${alnum}{36}`],
  ['a Vercel token', ['vercel_blob_rw_'], `${alnum}{10,30}_${alnum}{20,50}`],
  ['a Vercel token', ['vcp_', 'vci_', 'vca_', 'vcr_', 'vck_'], `${alnum}{24,80}`],
  ['a Supabase token', ['sbp_'], `${hex}{40}`],
  ['a Supabase key', ['sb_secret_'], `${url}{20,60}`],
  ['a PlanetScale token', ['pscale_tkn_'], `${base64}{32,64}`],
  ['a PlanetScale password', ['pscale_pw_'], `${base64}{32,64}`],
  ['a Pulumi token', ['pul-'], `${hex}{40}`],
  ['a 1Password token', ['ops_'], `eyJ${base64}{100,2000}`],
  ['a New Relic key', ['NRAK-'], `${upper}{27}`],
  ['a New Relic key', ['NRII-'], `${url}{32}`],
  ['a Sentry token', ['sntrys_'], `${base64}{50,400}`],
  ['a Sentry token', ['sntryu_'], `${hex}{64}`],
  ['a Grafana token', ['glsa_'], `${alnum}{32}_[A-Fa-f0-9]{8}`],
  ['a Grafana token', ['glc_'], `eyJ${base64}{40,400}`],
  ['a PostHog key', ['phx_'], `${url}{40,60}`],
  ['a SonarQube token', ['sqp_', 'squ_', 'sqa_'], `${hex}{40}`],
  ['a Buildkite token', ['bkua_'], `${hex}{40}`],
  ['a CircleCI token', ['CCIPAT_'], `${alnum}{22}_${hex}{40}`],
  ['a Linear key', ['lin_api_'], `${alnum}{32,48}`],
  ['a Linear key', ['lin_oauth_'], `${alnum}{32,64}`],
  ['a Notion token', ['ntn_'], `${alnum}{40,50}`],
  ['a Notion token', ['secret_'], `${alnum}{43}(?!${alnum})`],
  ['a Figma token', ['figd_'], `${url}{36,60}`],
  ['an Airtable token', ['pat'], `${alnum}{14}\\.${hex}{64}`],
  ['a Postman key', ['PMAK-'], `${hex}{24}-${hex}{34}`],
  ['a Contentful token', ['CFPAT-'], `${url}{43}`],
  ['a Typeform token', ['tfp_'], `${url}{40,70}`],
  ['a Dropbox token', ['sl.'], `${url}{100,1500}`],
  ['a Facebook token', ['EAA'], `${alnum}{100,400}`],
  [
    'a GitLab token',
    ['glpat-', 'gloas-', 'gldt-', 'glrt-', 'glrtr-', 'glcbt-', 'glptt-', 'glft-', 'glimt-', 'glagent-', 'glsoat-', 'glffct-'],
    `${url}{20,300}`,
  ],
  ['a Shopify token', ['shpat_', 'shpca_', 'shppa_', 'shpss_'], '[0-9a-fA-F]{32}'],
];

/** Tokens that a pattern identifies rather than a prefix. */
export const SHAPED_TOKENS: readonly ShapedToken[] = [
  ['a private key', 'begin ssh2', /---- BEGIN SSH2 [A-Z ]{0,20}PRIVATE KEY ----[\s\S]{0,400}?([A-Za-z0-9+/]{40})/g],
  ['a private key', 'private-lines', /Private-Lines: \d{1,3}\s{1,2}([A-Za-z0-9+/]{40})/g],
  ['an Azure client secret', 'q~', /(?<![\w~.-])([\w~.-]{3}\dQ~[\w~.-]{31,34})(?![\w~.-])/g],
  ['an Azure shared access signature', 'sig=', /[?&;]sig=([A-Za-z0-9%+/=]{40,100})/g],
  ['a Slack token', 'xox', /(?<![A-Za-z0-9])xox[a-z](?:\.xox[a-z])?-([A-Za-z0-9-]{20,250})/g],
  ['a Discord webhook', '/api/webhooks/', /discord(?:app)?\.com\/api\/webhooks\/\d{15,20}\/([\w-]{50,100})/g],
  ['a Discord token', '.', /(?<![\w.-])([MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,38})(?![\w-])/g],
  ['a Telegram bot token', ':aa', /(?<!\w)\d{8,10}:AA([\w-]{33})(?![\w-])/g],
  ['a Teams webhook', 'webhook.office.com', /webhook\.office\.com\/webhookb2\/[\w@-]{30,90}\/IncomingWebhook\/([\w-]{32})/g],
  ['a Plaid token', 'access-', /(?<!\w)access-(?:sandbox|development|production)-([0-9a-f]{8}-[0-9a-f-]{27})/g],
  ['a LangSmith key', 'lsv2_', /lsv2_(?:pt|sk)_([0-9a-f]{32}_[0-9a-f]{10})/g],
  ['a Mailgun key', '-', /(?<![\w-])([0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8})(?![\w-])/g],
  ['a Mailchimp key', '-us', /(?<!\w)([0-9a-f]{32})-us\d{1,2}(?!\w)/g],
  ['a Terraform Cloud token', '.atlasv1.', /(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.([\w=-]{60,80})/g],
  ['a Tailscale key', 'tskey-', /(?<!\w)tskey-[a-z]{3,12}-[A-Za-z0-9]{8,24}-([A-Za-z0-9]{20,60})/g],
  ['a Cloudflare key', 'v1.0-', /(?<!\w)v1\.0-([0-9a-f]{24}-[0-9a-f]{100,160})/g],
  ['a Doppler token', 'dp.', /(?<!\w)dp\.(?:pt|st|ct|sa|scim|audit)\.([\w.-]{40,80})/g],
  ['a New Relic key', 'nral', /(?<!\w)([0-9a-f]{36}NRAL)(?!\w)/g],
];

const words = (text: string): readonly string[] => text.split(/\s+/);

/** Words for a password. Each word is used as part of a regular expression. */
export const PASSWORD_WORDS = [
  ...words('password passwd passphrase passcode pass pwd passwort kennwort wachtwoord contraseña contrasena senha parola hasło'),
  ...words('heslo lösenord adgangskode salasana şifre пароль 密码 密碼 パスワード 비밀번호'),
  'mot de passe',
];

/** Words before a password that people write without a verb, as in "wifi password sommer2026". */
export const NETWORK_WORDS = words('wi-?fi wlan network netzwerk hotspot router guest gäste');

/** Names of cookies that identify a signed-in user, whatever text surrounds them. */
export const SESSION_COOKIES = words(
  'li_at cf_clearance JSESSIONID PHPSESSID ASP.NET_SessionId connect.sid laravel_session __Secure-next-auth.session-token',
);

/** Matches typical names of session cookies. The prefixes `__Host-` and `__Secure-` are rarely used for anything else. */
export const SESSION_COOKIE_NAME = /(?:sess|sid$|auth|token|jwt|login|remember|^__(?:Host|Secure)-(?!csrf))/i;

export const SECRET_WORDS = words('secret token credential credentials auth apikey key pat');

/**
 * Words that can follow a password in a sentence. Before any other word, the value can be part of a phrase, as in "Python3 only".
 */
export const WORDS_AFTER_PASSWORD: ReadonlySet<string> = new Set(
  words(
    'and but or so since for on at in if as because until everywhere anywhere always again too also here there now today still ' +
      'currently changed geändert gesetzt und aber oder seit für auf im bei am wenn überall immer wieder auch hier dort jetzt heute partout toujours aussi',
  ),
);

/** Words before `key` which show that the key is a secret. */
export const WORDS_OF_SECRET_KEYS: ReadonlySet<string> = new Set(
  words(
    'api access secret private account encryption encrypt signing master auth storage shared service admin app application ' +
      'deploy webhook write subscription client consumer integration memory recovery session license licence crypt cipher hmac ' +
      'jwt preshared psk',
  ),
);

/** Words before `token` or `key` which show that the value is harmless. */
export const WORDS_OF_HARMLESS_KEYS: ReadonlySet<string> = new Set(
  words(
    'public publishable page next continuation sync resume cursor csrf xsrf pad eos bos sep mask unk cls stop cache primary ' +
      'partition sort foreign idempotency routing dedup host site max min',
  ),
);
