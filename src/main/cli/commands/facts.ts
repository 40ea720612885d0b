import type { FactDetail, FactList } from '../../../contract/fact.ts';
import { Failure } from '../../../contract/failure.ts';
import { PAGE, QUERY, VALUE_BYTES } from '../../../contract/limits.ts';
import type { OperationRequest } from '../../../contract/operations.ts';
import type { SearchResponse } from '../../../contract/search.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { columns, decodeUtf8, escapeControls, formatCount, formatMark, formatWriter, indent, jsonText } from '../layout.ts';
import { formatMinute, formatTimeLeft } from '../times.ts';
import { given, parseCount, parseExpiryWindow, parseLifetime, parseMode } from '../values.ts';

/** Maximum bytes of the input. Larger than the limit of a value, because leading and trailing spaces do not count. */
const MAX_INPUT_BYTES = 16 * VALUE_BYTES;
/** Maximum milliseconds to wait for the search index. The index of the largest memory needs less time to build. */
const INDEX_BUILD_MS = 10_000;

export const remember = command({
  name: 'remember',
  description: 'Stores a fact, or changes the fact with the same key.',
  arguments: {
    key: { description: 'A short, stable name, such as preferences/editor.' },
    value: {
      description: 'The text of the fact. To read the text from standard input, leave this out or use -.',
      optional: true,
    },
  },
  options: {
    category: { value: '<name>', description: 'Category of the fact. Default: user_facts.' },
    tag: { value: '<word>', description: 'Tag that helps to find the fact. Can be repeated.', many: true },
    ttl: {
      value: '<time>',
      description: 'Lifetime of the fact, such as 90d, 12h or a number of seconds; from 1h to 365d. Default: 90d.',
    },
    supersedes: {
      value: '<key>',
      description: 'Key of another fact that this one makes outdated. That fact moves to the history of this one.',
    },
  },
  details: [
    'Other users of the machine can see a command line (with ps), and the shell saves it. Pass a private value on standard input. Secrets such as passwords belong in a password manager, not in a memory.',
  ],
  examples: [
    'remember preferences/editor "Helix, everywhere"',
    'remember decisions/database --category decisions --tag project-x < decision.md',
    'remember meeting "Friday at ten" --ttl 4d',
    'remember office/wifi "The guest network is Aurora" --supersedes office/network',
  ],
  async run({ arguments: { key, value }, options: { category, tag, ttl, supersedes } }, context) {
    const seconds = parseLifetime(ttl);
    // Read the value before opening the memory, so that other commands can use the memory during the input.
    const text = value === undefined || value === '-' ? await readValue(context) : value;
    const tags = tag.length > 0 ? [...tag] : undefined;
    const chosen = given({ category, tags, ttl_seconds: seconds, supersedes });
    const receipt = await context.call('remember', { key, value: text, ...chosen });
    const did = { created: 'Remembered', updated: 'Changed', unchanged: 'Unchanged; lifetime renewed:' }[receipt.status];
    await context.printResult(receipt, () => [
      `${did} ${escapeControls(receipt.key)}, ${formatTimeLeft(receipt.expires_at, context.now)}`,
    ]);
    if (receipt.superseded !== undefined)
      context.hint(`The fact ${escapeControls(receipt.superseded)} is now in the history of this fact.`);
    if (receipt.note !== undefined) context.hint(receipt.note);
  },
});

export const recall = command({
  name: 'recall',
  description: 'Shows the fact with this key.',
  arguments: { key: { description: 'The exact key.' } },
  details: [
    'In a pipe, prints only the value, exactly as stored, and warns of suspicious text on standard error. On a terminal, also shows who wrote the fact and when it expires.',
  ],
  examples: ['recall preferences/editor', 'recall decisions/database > decision.md'],
  async run({ arguments: { key } }, context) {
    const fact = await context.call('recall', { key });
    await context.printResult(fact, () => (context.terminal.outputIsTerminal ? factInFull(fact, context) : [fact.value]));
    // In a pipe, the output is only the value. Agents read commands through pipes, so the warning goes to stderr.
    if (!context.terminal.outputIsTerminal) context.hint(...formatMark(fact.marked));
  },
});

export const list = command({
  name: 'list',
  description: 'Lists facts, newest first.',
  options: {
    prefix: { value: '<text>', description: 'Only facts whose key starts with this text.' },
    category: { value: '<name>', description: 'Only this category.' },
    tag: { value: '<word>', description: 'Only facts with this tag.' },
    client: { value: '<name>', description: 'Only facts last written by this client.' },
    'expiring-within': { value: '<time>', description: 'Only facts that expire within this time, such as 7d.' },
    sort: { value: '<order>', description: 'Order: `updated` (newest first) or `expires` (soonest first).' },
    limit: { value: '<number>', description: `Maximum number of facts. Default: ${PAGE.default}.` },
    all: { description: 'Lists all facts. With --json, prints one fact per line (NDJSON).' },
    values: { description: 'Also shows the values of the facts.' },
  },
  examples: ['list --category decisions --values', 'list --expiring-within 7d --sort expires', 'list --all --json'],
  async run({ options }, context) {
    const { prefix, category, tag, client, sort, all, values } = options;
    const within = parseExpiryWindow(options['expiring-within']);
    const limit = all ? Infinity : (parseCount(options.limit, '--limit') ?? PAGE.default);
    const filter = given({ prefix, category, tag, client, expiring_within: within });
    const facts: FactList['facts'] = [];
    let shown = 0;
    let cursor: string | undefined;
    do {
      const page = await context.call('list', {
        ...filter,
        // The cast is safe, because the memory rejects an unknown order and lists the valid orders.
        ...given({ sort: sort as 'updated' | 'expires' | undefined, cursor }),
        limit: Math.min(limit - shown, PAGE.max),
        values,
      });
      shown += page.facts.length;
      cursor = page.next_cursor;
      if (all) await context.terminal.print(...(context.json ? page.facts.map(jsonText) : factLines(page.facts, context)));
      else facts.push(...page.facts);
    } while (cursor !== undefined && shown < limit);
    if (!all) await context.printResult({ facts, more: cursor !== undefined }, () => factLines(facts, context));
    if (shown === 0) context.hint('No matching facts.');
    if (cursor !== undefined) context.hint('There are more facts. Use --all or a higher --limit.');
  },
});

export const search = command({
  name: 'search',
  description: 'Finds facts by words and meaning, best match first.',
  arguments: { words: { description: 'The question, words or phrase to search for.', rest: true } },
  options: {
    category: { value: '<name>', description: 'Only this category.' },
    tag: { value: '<word>', description: 'Only facts with this tag.' },
    client: { value: '<name>', description: 'Only facts last written by this client.' },
    'expiring-within': { value: '<time>', description: 'Only facts that expire within this time, such as 7d.' },
    mode: { value: '<mode>', description: 'What to compare: words, meaning, or both as needed (auto, the default).' },
    limit: { value: '<number>', description: `Maximum number of facts. Default: ${QUERY.default}.` },
  },
  details: [
    'Shows the matching part of each fact, the probability that the fact answers the question, and why it was found. To see a whole fact, use the `recall` command.',
  ],
  examples: [
    'search how do I get in at night',
    'search frontend framework --mode words',
    'search "deploy on friday" --category decisions --limit 3',
  ],
  async run({ arguments: { words }, options }, context) {
    const { category, tag, client, mode } = options;
    const within = parseExpiryWindow(options['expiring-within']);
    const limit = parseCount(options.limit, '--limit', QUERY.max);
    const filter = given({ category, tag, client, expiring_within: within, limit, mode: parseMode(mode) });
    const answer = await searchAll(context, { query: words, ...filter });
    await context.printResult(answer, () =>
      answer.hits.flatMap(({ key, category: group, client: writer, updated_at: changed, snippet, expires_at: end, ...hit }) => [
        `${escapeControls(key)}  ${context.terminal.dim(`${escapeControls(group)}, by ${escapeControls(writer)} ${formatMinute(changed)}, ${formatTimeLeft(end, context.now)}`)}`,
        ...indent(escapeControls(snippet)),
        ...formatMark(hit.marked).flatMap((warning) => indent(warning)),
        ...indent(context.terminal.dim(escapeControls(`Probability ${hit.probability}: ${hit.why}`))),
      ]),
    );
    if (answer.hits.length === 0) context.hint('No fact matches. Try fewer or different words.');
    if (mode === 'meaning' && !answer.meaning) {
      context.hint('Only words were compared. To see why, run: helmdeck-memory meaning status');
    } else if (answer.meaning === 'partial') {
      context.hint('Some facts have no vector yet, so they were found by their words only.');
    }
    if (answer.partial) context.hint('The index is still being built, so results may be missing. Try again in a moment.');
  },
});

/** Repeats the search until the search index is complete, because results are partial while the index is being built. */
async function searchAll(context: CommandContext, request: OperationRequest<'search'>): Promise<SearchResponse> {
  const until = performance.now() + INDEX_BUILD_MS;
  for (;;) {
    const answer = await context.call('search', request);
    if (!answer.partial || performance.now() > until) return answer;
  }
}

export const renew = command({
  name: 'renew',
  description: 'Changes the lifetime, category or tags of a fact.',
  arguments: { key: { description: 'The exact key.' } },
  options: {
    ttl: {
      value: '<time>',
      description: 'New lifetime from now on, such as 90d, 12h or a number of seconds; 0 means the default of 90d.',
    },
    category: { value: '<name>', description: 'New category of the fact.' },
    tag: { value: '<word>', description: 'New tag. Replaces all current tags. Can be repeated.', many: true },
    untag: { description: 'Removes all tags of the fact.' },
  },
  details: ['Everything else stays as it is. To change the value, use the `remember` command.'],
  examples: ['renew preferences/editor --ttl 365d'],
  async run({ arguments: { key }, options: { ttl, category, tag, untag } }, context) {
    const seconds = parseLifetime(ttl);
    const tags = tag.length > 0 || untag ? [...tag] : undefined;
    const fact = await context.call('patch', { key, ...given({ category, tags, ttl_seconds: seconds }) });
    await context.printResult(fact, () => factLines([fact], context));
  },
});

export const history = command({
  name: 'history',
  description: 'Shows earlier versions of a fact, newest first.',
  arguments: { key: { description: 'The exact key.' } },
  async run({ arguments: { key } }, context) {
    const answer = await context.call('history', { key });
    await context.printResult(answer, () =>
      answer.versions.flatMap(
        ({ value, category, tags, written_at: written, expires_at: end, former_key: former, ...signed }) => [
          [
            formatMinute(written),
            formatWriter(signed),
            escapeControls(category),
            ...tagged(tags),
            formatTimeLeft(end, context.now),
            ...(former === undefined ? [] : [`from ${escapeControls(former)}`]),
          ].join('  '),
          ...indent(escapeControls(value)),
        ],
      ),
    );
    if (answer.versions.length === 0) context.hint('There are no earlier versions of this fact.');
  },
});

async function readValue(context: CommandContext): Promise<string> {
  if (context.terminal.inputIsTerminal) context.terminal.printToStderr('Type the value, then press Ctrl+D on an empty line:');
  const bytes = await context.terminal.read(MAX_INPUT_BYTES);
  if (!bytes)
    throw new Failure(
      'invalid_input',
      `The value is longer than ${VALUE_BYTES / 1024} KiB. Store a summary as the value, and the rest in a file.`,
    );
  const value = decodeUtf8(bytes);
  if (value !== undefined) return value;
  throw new Failure('invalid_input', 'The value is not UTF-8. Pass it as UTF-8 text.');
}

const tagged = (tags: readonly string[]): string[] =>
  tags.length === 0 ? [] : [tags.map((tag) => `#${escapeControls(tag)}`).join(' ')];

function factInFull(
  { key, value, marked, category, tags, created_at, updated_at, expires_at, shown, ...signed }: FactDetail,
  context: CommandContext,
): string[] {
  const about = [
    ['category', escapeControls(category)],
    ...tagged(tags).map((words) => ['tags', words]),
    [
      'written',
      `${formatMinute(updated_at)} by ${formatWriter(signed)}${created_at === updated_at ? '' : `, first ${formatMinute(created_at)}`}`,
    ],
    ['lifetime', formatTimeLeft(expires_at, context.now)],
    ...(shown
      ? [
          [
            'shown',
            `${formatCount(shown.count, 'time')}, last to ${escapeControls(shown.last_client)} ${formatMinute(shown.last_at)}`,
          ],
        ]
      : []),
  ];
  return [
    escapeControls(key),
    '',
    ...indent(escapeControls(value)),
    '',
    ...formatMark(marked),
    ...columns(about).map((line) => context.terminal.dim(line)),
  ];
}

function factLines(facts: FactList['facts'], context: CommandContext): string[] {
  const rows = columns(
    facts.map(({ key, category, tags, expires_at, ...signed }) => [
      escapeControls(key),
      escapeControls(category),
      formatTimeLeft(expires_at, context.now),
      formatWriter(signed),
      ...tagged(tags),
    ]),
  );
  return facts.flatMap(({ value, marked }, at) => [
    rows[at] ?? '',
    ...(value === undefined ? [] : indent(escapeControls(value))),
    ...formatMark(marked).flatMap((warning) => indent(warning)),
  ]);
}
