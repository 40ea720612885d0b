/** A text that contains a credential, and the kind that `findSecret` reports for it. */
export interface Credential {
  readonly kind: string;
  readonly text: string;
}

const DIGITS = '0123456789';
const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const LOWER = 'abcdefghijklmnopqrstuvwxyz';

/** A small generator (mulberry32): the same seed makes the same letters, so a failure can be repeated. */
const randomFrom = (seed: number) => (): number => {
  seed = (seed + 0x6d2b79f5) | 0;
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
};

/** Generated, so that this file contains no real credential and secret scanners do not report it. */
const letters = (seed: number) => {
  const random = randomFrom(seed);
  const of = (alphabet: string) => (length: number) =>
    Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join('');
  const hex = of('0123456789abcdef');
  return {
    digits: of(DIGITS),
    upper: of(UPPER + DIGITS),
    lower: of(LOWER + DIGITS),
    base32: of(UPPER + '234567'),
    alnum: of(UPPER + LOWER + DIGITS),
    url: of(UPPER + LOWER + DIGITS + '_-'),
    base64: of(UPPER + LOWER + DIGITS + '+/'),
    hex,
    uuid: () => [8, 4, 4, 4, 12].map(hex).join('-'),
  };
};

const json64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Well-formed credentials of every known kind. Each seed gives different ones. */
export function credentials(seed: number): readonly Credential[] {
  const { digits, upper, lower, base32, alnum, url, base64, hex, uuid } = letters(seed);
  const jwt = (claims: object) => [json64({ alg: 'HS256', typ: 'JWT' }), json64(claims), url(43)].join('.');
  const pem = (label: string, lines: number, end = '\n') =>
    [`-----BEGIN ${label}-----`, ...Array.from({ length: lines }, () => base64(64)), `-----END ${label}-----`].join(end);

  return [
    { kind: 'a private key', text: pem('RSA PRIVATE KEY', 12) },
    { kind: 'a private key', text: `My deploy key:\n${pem('OPENSSH PRIVATE KEY', 6)}\nkeep it` },
    { kind: 'a private key', text: pem('PGP PRIVATE KEY BLOCK', 9).replace('\n', '\nVersion: GnuPG v2\n\n') },
    {
      kind: 'a private key',
      text: JSON.stringify({ type: 'service_account', project_id: 'konflux', private_key: pem('PRIVATE KEY', 20) }),
    },
    { kind: 'an AWS access key', text: 'AKIA' + base32(16) },
    { kind: 'an AWS access key', text: `aws configure set aws_access_key_id ASIA${base32(16)}` },
    { kind: 'a secret', text: `aws_secret_access_key = ${base64(40)}` },
    { kind: 'a Google API key', text: `maps key AIza${url(35)}` },
    {
      kind: 'a secret',
      text: `DefaultEndpointsProtocol=https;AccountName=konflux;AccountKey=${base64(86)}==;EndpointSuffix=core.windows.net`,
    },
    { kind: 'a GitHub token', text: 'ghp_' + alnum(36) },
    { kind: 'a GitHub token', text: `GITHUB_TOKEN=gho_${alnum(36)}` },
    { kind: 'a GitHub token', text: `use github_pat_${alnum(22)}_${alnum(59)} for the bot` },
    { kind: 'a GitLab token', text: 'glpat-' + url(20) },
    { kind: 'a Slack token', text: `xoxb-${digits(12)}-${digits(13)}-${alnum(24)}` },
    { kind: 'a Slack webhook', text: `https://hooks.slack.com/services/T${upper(8)}/B${upper(10)}/${alnum(24)}` },
    { kind: 'a Discord token', text: `bot: M${alnum(23)}.${url(6)}.${url(38)}` },
    { kind: 'a Discord webhook', text: `https://discord.com/api/webhooks/${digits(18)}/${url(68)}` },
    { kind: 'a Telegram bot token', text: `${digits(10)}:AA${url(33)}` },
    { kind: 'a Stripe key', text: `sk_live_${alnum(24)}` },
    { kind: 'a Stripe key', text: `rk_test_${alnum(99)}` },
    { kind: 'an Anthropic key', text: `ANTHROPIC_API_KEY=sk-ant-api03-${url(93)}AA` },
    { kind: 'an OpenAI key', text: `sk-proj-${url(74)}T3BlbkFJ${url(74)}` },
    { kind: 'an OpenAI key', text: `The key is sk-${alnum(48)}.` },
    { kind: 'a Google OAuth token', text: `ya29.a0${url(150)}` },
    { kind: 'a Hugging Face token', text: `hf_${alnum(34)}` },
    { kind: 'an npm token', text: `//registry.npmjs.org/:_authToken=npm_${alnum(36)}` },
    { kind: 'a PyPI token', text: `pypi-AgEIcHlwaS5vcmc${url(150)}` },
    { kind: 'a Docker Hub token', text: `docker login -u konflux with dckr_pat_${url(27)}` },
    { kind: 'a SendGrid key', text: `SG.${url(22)}.${url(43)}` },
    { kind: 'a secret', text: `TWILIO_AUTH_TOKEN=${hex(32)}` },
    { kind: 'a Mailgun key', text: `key-${hex(32)}` },
    { kind: 'a secret', text: `X-Postmark-Server-Token: ${uuid()}` },
    { kind: 'a Shopify token', text: `shpat_${hex(32)}` },
    { kind: 'a DigitalOcean token', text: `dop_v1_${hex(64)}` },
    { kind: 'a secret', text: `HEROKU_API_KEY=${uuid()}` },
    { kind: 'a Vault token', text: `VAULT_TOKEN=hvs.${url(90)}` },
    { kind: 'a Databricks token', text: `dapi${hex(32)}` },
    { kind: 'a New Relic key', text: `NRAK-${upper(27)}` },
    { kind: 'a Linear key', text: `lin_api_${alnum(40)}` },
    { kind: 'a Notion token', text: `ntn_${alnum(46)}` },
    { kind: 'a secret', text: `CLOUDFLARE_API_TOKEN="${url(40)}"` },
    { kind: 'a signed token', text: jwt({ iss: 'helmdeck', sub: 'me', exp: 1_790_000_000 }) },
    {
      kind: 'a signed token',
      text: `curl -H 'Authorization: Bearer ${jwt({ sub: digits(12), name: 'Ada' })}' http://localhost:4040`,
    },
    { kind: 'an age key', text: `AGE-SECRET-KEY-1${upper(58)}` },
    { kind: 'a secret', text: `[Interface]\nAddress = 10.0.0.2/32\nPrivateKey = ${base64(43)}=` },
    { kind: 'a password', text: 'password = Tr0ub4dor&3' },
    { kind: 'a password', text: `ssh deploy@10.0.0.7, password: ${alnum(5)}7x` },
    { kind: 'a secret', text: `api_key: ${alnum(32)}` },
    { kind: 'an authorization header', text: `Authorization: Bearer ${alnum(40)}` },
    { kind: 'an authorization header', text: `Authorization: Basic ${btoa(`konflux:${alnum(12)}`)}` },
    { kind: 'a password in a URL', text: `DATABASE_URL=postgres://app:${alnum(16)}@db.internal:5432/app` },
    { kind: 'a password in a URL', text: `mongodb+srv://ada:${alnum(16)}@cluster0.mongodb.net` },
    { kind: 'a password in a URL', text: `redis://:${alnum(20)}@cache.example.com:6379/0` },
    { kind: 'a secret', text: `HELMDECK_MEMORY_KEY=${hex(64)}` },
    { kind: 'a password', text: `machine api.heroku.com\n  login ada@example.com\n  password ${uuid()}` },
    { kind: 'a secret', text: `export JWT_SECRET='${lower(40)}'` },
    { kind: 'a private key', text: pem('EC PRIVATE KEY', 3).replaceAll('\n', '\\n') },
    {
      kind: 'a private key',
      text: `PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n${base64(48)}\nPrivate-MAC: ${hex(64)}`,
    },
    { kind: 'an AWS session token', text: `export AWS_SESSION_TOKEN=IQoJb3JpZ2lu${base64(300)}` },
    { kind: 'a secret', text: `Secret access key: ${base64(40)}` },
    {
      kind: 'a Google client secret',
      text: `{"client_id":"${digits(12)}.apps.googleusercontent.com","client_secret":"GOCSPX-${url(28)}"}`,
    },
    { kind: 'an Azure client secret', text: `AZURE_CLIENT_SECRET=${alnum(3)}8Q~${alnum(34)}` },
    {
      kind: 'an Azure shared access signature',
      text: `https://konflux.blob.core.windows.net/b?sv=2024-11-04&se=2027-01-01&sr=c&sp=rl&sig=${alnum(42)}%3D`,
    },
    {
      kind: 'a secret',
      text: `Endpoint=sb://konflux.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=${base64(43)}=`,
    },
    { kind: 'a GitHub token', text: `git clone https://x-access-token:ghs_${alnum(36)}@github.com/konflux/api` },
    { kind: 'a GitHub token', text: `{"refresh":"ghr_${alnum(76)}"}` },
    { kind: 'a GitLab token', text: `CI deploy token gldt-${url(20)}` },
    { kind: 'a GitLab token', text: `runner: glrt-t1_${url(20)}` },
    { kind: 'a Bitbucket token', text: `app password ATBB${alnum(32)}` },
    { kind: 'an Atlassian token', text: `jira: ATATT3xFfGF0${url(170)}=${upper(8)}` },
    { kind: 'a Slack token', text: `SLACK_APP_TOKEN=xapp-1-A${upper(10)}-${digits(13)}-${hex(64)}` },
    { kind: 'a Slack token', text: `xoxp-${digits(12)}-${digits(12)}-${digits(13)}-${hex(32)}` },
    { kind: 'a Stripe key', text: `Stripe.api_key = "sk_test_51${alnum(97)}"` },
    { kind: 'a signing secret', text: `STRIPE_WEBHOOK_SECRET=whsec_${alnum(32)}` },
    { kind: 'a Square token', text: `sq0atp-${url(22)}` },
    { kind: 'an OpenAI key', text: `OpenRouter: sk-or-v1-${hex(64)}` },
    { kind: 'a RubyGems key', text: `rubygems_${hex(48)}` },
    { kind: 'a Mailgun key', text: `mailgun ${hex(32)}-${hex(8)}-${hex(8)}` },
    { kind: 'a Twilio key', text: `twilio api:create said SK${hex(32)}` },
    {
      kind: 'a Terraform Cloud token',
      text: `credentials "app.terraform.io" { token = "${alnum(14)}.atlasv1.${alnum(67)}" }`,
    },
    { kind: 'a secret', text: `DD_API_KEY: ${hex(32)}` },
    { kind: 'a Sentry token', text: `SENTRY_AUTH_TOKEN=sntrys_eyJpYXQiOjE3${alnum(120)}=_${alnum(43)}` },
    { kind: 'a Notion token', text: `notion secret_${alnum(43)}` },
    { kind: 'a Figma token', text: `figma.pat: figd_${url(40)}` },
    { kind: 'a Supabase token', text: `supabase login --token sbp_${hex(40)}` },
    { kind: 'a secret', text: `vercel deploy --token ${alnum(24)}` },
    { kind: 'a Netlify token', text: `NETLIFY_AUTH_TOKEN=nfp_${alnum(36)}` },
    { kind: 'a Fly token', text: `FLY_API_TOKEN="FlyV1 fm2_${base64(400)}"` },
    { kind: 'a secret', text: `curl -H "X-Auth-Email: ada@example.com" -H "X-Auth-Key: ${hex(37)}" https://api.cloudflare.com` },
    {
      kind: 'a signed token',
      text: `my token for the laptop:\n\n    ${jwt({ jti: uuid(), sub: 'me', client: 'claude-code' })}\n`,
    },
    { kind: 'a secret', text: `PresharedKey = ${base64(43)}=` },
    { kind: 'a password', text: `sshpass -p '${alnum(8)}2!' ssh root@10.0.0.1` },
    { kind: 'a password', text: '{"username":"ada","password":"hunter2-Blue"}' },
    { kind: 'a password', text: `spring.datasource.password=${alnum(10)}3` },
    { kind: 'a password', text: 'The wifi password is "Sonnenblume42"' },
    { kind: 'a password', text: 'my password is hunter2' },
    { kind: 'a password', text: 'my password is: hunter2' },
    { kind: 'a password', text: 'My password is : hunter2, as always' },
    { kind: 'a password', text: 'my password is hunter2 everywhere' },
    { kind: 'a password', text: 'Mein Passwort ist hunter2 überall' },
    { kind: 'a password', text: 'mon mot de passe est: soleil75' },
    { kind: 'a password', text: 'the wifi password is sommer2026' },
    { kind: 'a password', text: 'The password for the guest network is sommer2026, and it works in the garden too.' },
    { kind: 'a password', text: 'Mein Passwort ist hunter2.' },
    { kind: 'a password', text: 'das WLAN-Passwort ist sommer2026 und gilt bis Juli' },
    { kind: 'a password', text: 'Das Netzwerkpasswort lautet sommer2026' },
    { kind: 'a password', text: 'Mon mot de passe est soleil75' },
    { kind: 'a password', text: 'Passwort vom WLAN: sommer2026' },
    { kind: 'a password', text: 'Password for the guest network: sommer2026' },
    { kind: 'a password', text: 'wifi password sommer2026' },
    { kind: 'a password', text: 'WLAN-Passwort sommer2026, gilt bis Juli' },
    { kind: 'a password', text: 'Wi-Fi password: sommer2026' },
    { kind: 'a password', text: 'the wifi password was changed to sommer2026' },
    { kind: 'a password', text: 'My password has been reset to hunter2.' },
    { kind: 'a password', text: 'Das WLAN-Passwort wurde auf sommer2026 geändert' },
    { kind: 'a session cookie', text: `Cookie: __Host-user=${hex(32)}7a` },
    { kind: 'a session cookie', text: `li_at=AQEDAR${alnum(60)}7` },
    { kind: 'a session cookie', text: `cf_clearance=${alnum(43)}-1760000000-1.2.1.1-${alnum(60)}` },
    { kind: 'a session cookie', text: `JSESSIONID=${hex(32)}` },
    { kind: 'a session cookie', text: `curl -s -b "session=${hex(32)}7a" https://intranet.example.com/report` },
    { kind: 'a session cookie', text: `curl --cookie 'theme=dark; sid=${hex(32)}7a' https://intranet.example.com/` },
    { kind: 'a session cookie', text: `{"cookies":[{"name":"session","value":"${hex(32)}7a","domain":"example.com"}]}` },
    { kind: 'a session cookie', text: `Cookie: session=${alnum(24)}7` },
    { kind: 'a session cookie', text: 'Cookie: session=9f3ab07c41d2' },
    { kind: 'a session cookie', text: `curl -H "Cookie: theme=dark; connect.sid=s%3A${alnum(32)}3"` },
    { kind: 'a session cookie', text: `Set-Cookie: JSESSIONID=${alnum(32)}1; Path=/; HttpOnly` },
    { kind: 'a session cookie', text: `{"headers":{"cookie":"PHPSESSID=${alnum(26)}4"}}` },
    { kind: 'a password', text: 'Log in as root with password Qw7#kd92 on the old box' },
    { kind: 'a password', text: `Das Passwort lautet Zx9!${alnum(6)}` },
    { kind: 'a password', text: `Contraseña: ${alnum(7)}9a` },
    { kind: 'a password', text: '数据库密码：Kf83jd02Lm' },
    { kind: 'a password', text: 'пароль: Zima2026!' },
    { kind: 'a password', text: `Server=tcp:db;Database=app;User Id=sa;Password=${alnum(9)}4;Encrypt=true` },
    { kind: 'a password', text: `PGPASSWORD=${alnum(14)}1 psql -h db app` },
    { kind: 'a password', text: `mysql -h db -uroot -p${alnum(10)}5 app` },
    { kind: 'a password', text: `curl -u ada:${alnum(12)}6 https://nexus.example.com/` },
    { kind: 'a password', text: `# ~/.pgpass\ndb.internal:5432:app:ada:${alnum(12)}8` },
    { kind: 'a password', text: `| user | ada |\n| password | ${alnum(10)}2 |` },
    { kind: 'a password', text: `- **Password:** \`${alnum(10)}2\`` },
    { kind: 'a password', text: `docker run -e POSTGRES_PASSWORD=${alnum(12)}9 postgres:17` },
    { kind: 'a password', text: `env:\n  - name: SMTP_PASS\n    value: ${alnum(16)}` },
    { kind: 'a password in a URL', text: `remote: https://ada:${alnum(18)}@git.example.com/konflux/api.git` },
    { kind: 'a password in a URL', text: `CELERY_BROKER_URL=amqps://worker:${alnum(20)}@mq.example.com/vhost` },
    { kind: 'a password in a URL', text: `jdbc url is mysql://root:letmein@prod-db:3306/app` },
    { kind: 'an authorization header', text: `{"headers":{"Authorization":"Bearer ${url(43)}"}}` },
    { kind: 'an authorization header', text: `authorization: token ${hex(40)}` },
    { kind: 'a secret', text: `const apiKey = '${alnum(40)}';` },
    { kind: 'a secret', text: `"clientSecret": "${base64(44)}"` },
    { kind: 'a secret', text: `https://api.example.com/v1/items?access_token=${alnum(32)}&page=2` },
    { kind: 'a secret', text: `django SECRET_KEY = 'django-insecure-${lower(50)}'` },
    { kind: 'a secret', text: `os.environ["WEATHER_API_KEY"] = "${hex(32)}"` },
    { kind: 'a secret', text: `helmdeck.memory.key: ${hex(64)}` },
    { kind: 'a secret', text: `helm upgrade --set auth.token=${alnum(32)}` },
    { kind: 'a secret', text: `<add key="ApiKey" value="${alnum(32)}" />` },
    {
      kind: 'a seed phrase',
      text: 'seed phrase: legal winner thank year wave sausage worth useful legal winner thank yellow',
    },
    { kind: 'a secret', text: `ADMIN_TOKEN=${alnum(32)}` },
    { kind: 'a secret', text: `WEBSITE_SECRET: ${hex(40)}` },
    {
      kind: 'a 1Password secret key',
      text: `Secret Key A3-${upper(6)}-${upper(6)}-${upper(5)}-${upper(5)}-${upper(5)}-${upper(5)}`,
    },
    {
      kind: 'a recovery key',
      text: `Recovery key of my memory: ${Array.from({ length: 14 }, () => upper(4).replace(/[ILOU]/g, '7')).join('-')}`,
    },
  ];
}
