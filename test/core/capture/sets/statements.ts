/** A prompt with a lasting statement among other text. */
export interface Statement {
  readonly prompt: string;
  /** Words that the value of the proposal must contain, so that it is the statement and not something else. */
  readonly says: readonly string[];
}

const say = (prompt: string, ...says: readonly string[]): Statement => ({ prompt, says });

export const statements: readonly Statement[] = [
  // Tools and package managers
  say('Always use pnpm in this repo, never npm. Now add zod to the api package please.', 'pnpm', 'npm'),
  say('can you fix the lockfile? and from now on use bun instead of npm for everything here', 'bun'),
  say('No, we use pnpm here, not npm. Please revert the package-lock.json you just created.', 'pnpm', 'npm'),
  say('no no, we use yarn in this project, not npm. delete that lockfile', 'yarn', 'npm'),
  say('I prefer vitest over jest. Write the tests for the parser.', 'vitest', 'jest'),
  say('I prefer ripgrep to grep, so use that when you search. Where is the retry logic?', 'ripgrep'),
  say('We switched from Webpack to Vite last month, so the old config can go. Please remove it.', 'Webpack', 'Vite'),
  say('we moved from Jenkins to GitHub Actions, the Jenkinsfile is dead. please clean up ci/', 'Jenkins', 'GitHub Actions'),
  say('Remember that we use Biome for linting and formatting, not ESLint and Prettier. Then run it on src/.', 'Biome'),
  say('remember: the monorepo is managed with turborepo. ok now build the web app', 'turborepo'),

  // Code style
  say('Please refactor UserCard. In general I want functional components only, never class components.', 'functional components'),
  say('As a rule, no default exports in our TypeScript code. Can you rename this one?', 'default exports'),
  say('We always write commit messages in the imperative mood. Commit what you have.', 'commit messages', 'imperative'),
  say('Commit messages should always follow Conventional Commits. Commit this as a fix.', 'Conventional Commits'),
  say('From now on, use tabs for indentation in all Go files. And fix the ones in cmd/ now.', 'tabs', 'Go'),
  say('Going forward, indent YAML with two spaces. This file has four, fix it', 'YAML', 'two spaces'),
  say('Never use `any` in TypeScript; use `unknown` instead. Type this function properly.', 'any', 'unknown'),
  say("Never add comments that just repeat the code. Now document the scheduler's public API.", 'comments'),
  say(
    "Don't ever mock the database in integration tests. We run them against a real Postgres. Why is this one failing?",
    'mock',
    'database',
  ),
  say('We never mock the clock in unit tests, we inject it. Please change the billing tests like that.', 'clock', 'inject'),
  say(
    'Our naming convention is snake_case for Python and camelCase for TypeScript. Rename the helpers.',
    'snake_case',
    'camelCase',
  ),
  say('our convention is that file names are kebab-case, so rename UserList.tsx', 'kebab-case'),
  say('All our API errors are returned as RFC 9457 problem details. Implement the 404 for /orders.', 'RFC 9457'),
  say('All dates in our API are ISO 8601 in UTC. Add created_at to the invoice response.', 'ISO 8601', 'UTC'),
  say('Every new endpoint must have an OpenAPI description, that is our rule. Add one for /health.', 'OpenAPI'),
  say('Every migration needs a rollback script, we agreed on that in March. Write the one for 0042.', 'rollback'),

  // Answers of the assistant
  say('Please always answer in German, even if I write in English. What does this regex do?', 'German'),
  say('always explain your reasoning in at most three sentences. why is the cache cold after deploy?', 'three sentences'),
  say("I'd like short answers without an introduction from now on. How do I undo the last commit?", 'short answers'),
  say('From now on please skip the summary at the end of your answers. What changed in this diff?', 'summary'),
  say("Don't use emojis in your answers, ever. List the open TODOs.", 'emojis'),
  say('Never apologise, just fix it. The build is red again.', 'apologise'),
  say('I want you to always ask before you install a new package. Which date library would fit?', 'ask', 'package'),
  say('In future, ask me before you delete files. Please clean up the temp scripts.', 'ask', 'delete'),
  say('Always run the linter before you tell me that you are done. Now fix issue 311.', 'linter'),
  say('always run the type checker after editing .ts files pls. rename getUser to fetchUser', 'type checker'),
  say('Whenever you change an API, update docs/api.md as well. Add the limit parameter to /search.', 'docs/api.md'),
  say('Whenever you touch the schema, regenerate the types with `make types`. Add the column now.', 'make types'),

  // The person
  say('My name is Lena Brandt, sign the release mail with it. Draft it please.', 'Lena Brandt'),
  say('btw my name is Tomasz, not Thomas. Can you fix the author in package.json?', 'Tomasz'),
  say("I'm a backend developer and don't know much CSS. Why is this div not centered?", 'backend developer'),
  say('I am a data scientist, I mostly work in Python. Explain this Rust error to me.', 'data scientist'),
  say('I work in the Europe/Lisbon time zone. When is the standup of the Austin team for me?', 'Lisbon'),
  say("I'm based in Vancouver, so use Pacific time. Schedule the job for 9am my time.", 'Vancouver'),
  say("I'm colour-blind, so don't rely on red and green alone in charts. Plot the latency by region.", 'colour-blind'),
  say('I am left-handed and use a split keyboard with a Dvorak layout. Suggest good tmux bindings.', 'Dvorak'),
  say("I'm allergic to peanuts. Suggest a snack list for the team offsite.", 'peanuts'),
  say("We're vegetarian at home. Plan dinners for next week, please.", 'vegetarian'),
  say('My editor is Helix, so give me Helix key bindings. How do I select a function?', 'Helix'),
  say('My shell is fish, bash syntax does not work for me. Set an env variable for this session.', 'fish'),
  say('I use a Mac with an M3 and no Docker Desktop, only colima. Why does the container not start?', 'colima'),
  say('I use Arch Linux with Sway on all my machines. How do I share my screen?', 'Arch'),
  say('My GitHub user name is lbrandt-dev. Add me to CODEOWNERS for /infra.', 'lbrandt-dev'),
  say('my work email is lena@konflux.example, put it into the maintainers file', 'lena@konflux.example'),
  say('My favourite colour scheme is Catppuccin Mocha. Make a terminal theme file for WezTerm.', 'Catppuccin'),
  say('I like my tests named as full sentences. Rename the ones in cart.test.ts.', 'full sentences'),

  // Infrastructure
  say('Our staging runs on port 8443. Why do I get connection refused on 443?', 'staging', '8443'),
  say('our staging environment lives on fly.io, production on hetzner. write a deploy script', 'fly.io', 'hetzner'),
  say(
    'The production database is Postgres 17 on Hetzner. Can we use MERGE with RETURNING there?',
    'production database',
    'Postgres 17',
  ),
  say('The CI runs on Node 24 only. Can I use import attributes there?', 'CI', 'Node 24'),
  say('FYI the main branch is called trunk here. Rebase my branch.', 'trunk'),
  say('fyi our default branch is develop, not main. open the PR against that', 'develop'),
  say('We deploy every Tuesday at 10. Prepare the changelog for the next one.', 'deploy', 'Tuesday'),
  say('We release on the first Monday of each month. What is left on the milestone?', 'first Monday'),
  say('Our logs are in Loki, not in Elasticsearch. Write a query for 500s of the last hour.', 'Loki'),
  say('Our secrets are kept in 1Password, vault Infra, never in .env files. Wire the deploy job to it.', '1Password'),
  say('The API is versioned by header, not by path. Add the orders endpoint accordingly.', 'header'),
  say('The frontend talks to the backend only through the BFF in apps/gateway. Where should this call go?', 'apps/gateway'),
  say('Feature flags are stored in Unleash, the flag names start with web_. Add one for the new checkout.', 'Unleash'),
  say('The test database is reset every night at 2. Is that why my fixtures are gone?', 'test database'),

  // Decisions
  say(
    'We decided to use PostgreSQL instead of MongoDB because of the reports. Please write the first migration.',
    'PostgreSQL',
    'MongoDB',
  ),
  say('We decided yesterday that the mobile app will be written in Flutter. Set up the folder.', 'Flutter'),
  say("We've decided to drop support for Node 18. Update the engines field and the CI matrix.", 'Node 18'),
  say('the team decided against GraphQL, we stay with REST. so remove the apollo packages', 'GraphQL', 'REST'),
  say('We agreed to use feature branches and squash merges. Merge this the right way, please.', 'squash'),
  say('We agreed with Legal that logs are kept for 30 days. Set the retention.', '30 days'),
  say("We're going with Tailwind for the new design. Convert the header component.", 'Tailwind'),
  say("ok we're going with option B: events through NATS, no Kafka. start with the publisher", 'NATS'),
  say('We chose Keycloak as the identity provider. How do I get a token in the e2e tests?', 'Keycloak'),
  say('The decision is to keep the monolith until 2027. Please write that into the ADR.', 'monolith'),
  say('After the review we settled on cursor pagination for all lists. Change /users to it.', 'cursor pagination'),
  say('We no longer support Internet Explorer or old Edge. Can this polyfill go?', 'Internet Explorer'),

  // People and projects
  say('Ada owns the billing service, so ask her for review. Open a draft PR.', 'Ada', 'billing'),
  say('Grace is responsible for the database schema. Who should review this migration?', 'Grace', 'schema'),
  say('Our customer Müller GmbH pays within 30 days. Write a reminder for invoice 1182.', 'Müller GmbH', '30 days'),
  say('My manager is Priya and she only reads bullet points. Turn this into a status mail.', 'Priya'),
  say('This project is called Borealis internally, Aurora is the public name. Update the README.', 'Borealis', 'Aurora'),
  say('The project targets Python 3.12 and newer. Can I use the new type parameter syntax?', 'Python 3.12'),
  say('Standup is at 9:30 Berlin time every day. Put a reminder into my calendar file.', '9:30'),
  say('My working hours are 7 to 15, no meetings after that. Find a slot for the retro.', '7 to 15'),

  // Remember that, and corrections
  say('Remember that Friday is a no-deploy day. Is the hotfix ready to go out now?', 'Friday'),
  say("Please remember that I can't install anything with sudo on this laptop. How do I get jq?", 'sudo'),
  say('Keep in mind that our users are mostly on slow 3G connections. Optimise the landing page.', 'slow 3G'),
  say('keep in mind we have to stay compatible with Python 3.9. use a match statement? or what else', 'Python 3.9'),
  say('Note for the future: the e2e tests need VPN. Run only the unit tests now.', 'VPN'),
  say('For future reference, the fixtures are generated by scripts/seed.ts. Add a user with two orders.', 'scripts/seed.ts'),
  say("Don't forget that all user-visible text goes through i18n. Add the delete dialog.", 'i18n'),
  say('dont forget we ship to windows too, so no symlinks. make the build script work', 'windows'),
  say("That's wrong, our tax rate in Portugal is 23 %, not 19 %. Correct the calculation.", '23 %'),
  say('No, the API base path is /api/v2, not /v2. Try again.', '/api/v2'),
  say("Actually, it's spelled HelmDeck with a capital D in all marketing texts. Fix the page title.", 'HelmDeck'),
  say('Stop using semicolons, this codebase has none. Reformat what you wrote.', 'semicolons'),

  // German
  say('Wir verwenden hier immer pnpm, niemals npm. Bitte füge zod hinzu.', 'pnpm', 'npm'),
  say('Nein, wir benutzen pnpm, nicht npm. Mach das bitte rückgängig.', 'pnpm', 'npm'),
  say('Antworte ab jetzt immer auf Deutsch. Was macht diese Funktion?', 'Deutsch'),
  say('Ab sofort bitte keine Emojis mehr in Commit-Nachrichten. Committe den aktuellen Stand.', 'Emojis'),
  say('Merk dir: Der Kunde heißt Nordlicht AG, nicht Nordlicht GmbH. Korrigiere das Angebot.', 'Nordlicht AG'),
  say('Merke dir bitte, dass freitags nicht deployt wird. Ist der Hotfix fertig?', 'freitags'),
  say('Wir haben entschieden, dass die App mit Flutter gebaut wird. Lege das Projekt an.', 'Flutter'),
  say('Wir haben uns auf PostgreSQL geeinigt. Schreib die erste Migration.', 'PostgreSQL'),
  say('Ich bevorzuge kurze Antworten ohne Einleitung. Wie mache ich den letzten Commit rückgängig?', 'kurze Antworten'),
  say('Ich mag keine Abkürzungen in Variablennamen. Benenne die hier um.', 'Abkürzungen'),
  say('Mein Name ist Jürgen Kiesewetter. Setz ihn bitte in die Signatur der Mail.', 'Jürgen Kiesewetter'),
  say('Ich heiße Aylin und arbeite in der Buchhaltung. Erklär mir, was ein Webhook ist.', 'Aylin'),
  say('Unser Staging läuft auf Port 8443. Warum bekomme ich einen Timeout?', 'Staging', '8443'),
  say('Unsere Rechnungen gehen immer an buchhaltung@konflux.example. Schreib die Mail für März.', 'buchhaltung@konflux.example'),
  say('Bei uns gilt: Jede Migration braucht ein Rollback-Skript. Schreib das für 0042.', 'Migration', 'Rollback'),
  say('Denk daran, dass wir auch Windows unterstützen, also keine Symlinks. Repariere das Build-Skript.', 'Windows'),
  say('Niemals direkt auf main pushen! Erstell bitte einen Branch für die Änderung.', 'main'),
  say('Ich bin Rollstuhlfahrer, such mir bitte barrierefreie Hotels in Lissabon für die Konferenz.', 'Rollstuhlfahrer'),
];
