import { foldText } from '../search/words.ts';

/**
 * Topics that people often speak of, with the last part of their keys. Two statements about one topic get the same key, so that the
 * newer one replaces the older.
 */
const TOPICS: readonly (readonly [topic: string, pattern: RegExp])[] = [
  ['name', /\bmy (?:full |first |last )?name\b|\bmein name\b|\bich heiße\b/i],
  ['email', /\bmy (?:work |private |business )?e-?mail|\bmeine? (?:e-?)?mail/i],
  ['github-account', /\b(?:github|gitlab)\b.*\b(?:name|handle|account)\b/i],
  ['manager', /\bmy (?:manager|boss|team lead)\b|\bmeine? chef(?:in)?\b/i],
  ['package-manager', /\b(?:pnpm|npm|yarn|bun|package manager|lockfile)\b/i],
  ['commit-messages', /\bcommit[- ]?(?:messages?|nachrichten?)\b|\bconventional commits\b/i],
  [
    'answer-language',
    /\b(?:answers?|repl(?:y|ies)|respond|antworten?|antworte)\b.*\b(?:german|english|french|spanish|italian|deutsch|englisch|französisch)\b/i,
  ],
  ['answer-length', /\b(?:short|brief|concise|long|kurze?) (?:answers?|repl(?:y|ies)|antworten)\b|\bsentences\b/i],
  ['emojis', /\bemojis?\b/i],
  ['packages-to-install', /\bask\b.*\binstall\b/i],
  ['indentation', /\b(?:tabs?|indent\w*|two spaces|four spaces|einrück\w*)\b/i],
  ['test-framework', /\b(?:vitest|jest|pytest|junit)\b/i],
  ['linter', /\b(?:eslint|biome|prettier|linter|linting|ruff)\b/i],
  ['time-zone', /\btime ?zone\b|\b(?:based|live) in\b|\bzeitzone\b/i],
  ['working-hours', /\b(?:working|office) hours\b|\barbeitszeit/i],
  ['editor', /\bmy (?:editor|ide)\b|\bmein editor\b/i],
  ['shell', /\bmy shell\b|\bmeine shell\b/i],
  ['staging', /\bstaging\b/i],
  ['production', /\bproduction\b|\bproduktion\b/i],
  ['ci', /\b(?:ci|github actions|jenkins|gitlab ci)\b/i],
  ['default-branch', /\b(?:main|default) branch\b/i],
  ['no-deploy-days', /\bno[- ]deploy\b|\bfreitags\b.*\bdeployt\b/i],
  ['deployments', /\bwe deploy\b|\bdeployments?\b/i],
  ['releases', /\bwe release\b|\breleases?\b/i],
  ['feature-flags', /\bfeature flags?\b/i],
  ['secrets', /\bsecrets\b/i],
  ['logs', /\blogs\b/i],
  ['migrations', /\bmigrations?\b/i],
  ['default-exports', /\bdefault exports?\b/i],
  ['pagination', /\bpagination\b/i],
  ['standup', /\bstand-?up\b/i],
  ['diet', /\b(?:vegetarian|vegan|vegetarisch)\b/i],
  ['allergies', /\b(?:allergic|allergisch|intolerant)\b/i],
  ['database', /\b(?:postgres(?:ql)?|mysql|mongodb|sqlite|mariadb)\b/i],
];

/** Words that do not name a topic. */
const FILLERS = new Set(
  `a an the and or but so if of in on at to for from with without by as is are was were be been am it its this that these those there here
  i me my mine we us our ours you your he she they them their not no never always ever only also just please must should shall will would can
  could need needs has have had do does did don t s m re ve ll any all every each new now then than when whenever before after until very really
  generally usually normally use uses using used decided agreed settled chose want prefer like keep make sure go going note time ask
  der die das den dem des ein eine einen einem einer und oder aber wenn dass es gilt ist sind war wird werden wir uns unser unsere unserem ich
  mein meine mir mich du dir bitte immer nie niemals nicht kein keine keinen auf in im an am zu zum zur für von vom mit ohne bei nach aus auch
  mehr ab sofort jetzt haben hat entschieden verwenden benutzen nutzen hier nur muss müssen braucht`.split(/\s+/),
);

const WORDS = 3;
const WORD_CHARACTERS = 24;

/** Returns the last part of the key of a statement: a known topic, or its first words that mean something. */
export function topicOf(statement: string): string {
  const known = TOPICS.find(([, pattern]) => pattern.test(statement));
  if (known) return known[0];
  const words = slug(statement.replaceAll(/['’`]/g, ' '))
    .split('-')
    .filter((word) => word.length > 1 && word.length <= WORD_CHARACTERS && !FILLERS.has(word));
  return [...new Set(words)].slice(0, WORDS).join('-');
}

/** Returns a text in lower case, in which hyphens join the words. */
export const slug = (text: string): string =>
  foldText(text.replaceAll('ß', 'ss'))
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
    .replaceAll(/^-|-$/g, '')
    .normalize('NFC');
