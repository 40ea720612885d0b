import type { FactDetail, FactList } from '../../../contract/fact.ts';
import { Failure } from '../../../contract/failure.ts';
import { PAGE, QUERY, VALUE_BYTES } from '../../../contract/limits.ts';
import type { OperationRequest } from '../../../contract/operations.ts';
import type { SearchResponse } from '../../../contract/search.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { columns, indent, jsonText, escapeControls, formatWriter } from '../layout.ts';
import type { MemoryConnection } from '../memory-connection.ts';
import { formatMinute, formatTimeLeft } from '../times.ts';
import { parseLifetime, parseCount, parseExpiryWindow } from '../values.ts';

/** Blanks round a value do not count against it, and are not there to be waited for without end. */
const MOST_READ = 16 * VALUE_BYTES;
/** Longer than the largest memory takes. */
const BUILDING_MS = 10_000;

export const remember = command({
  name: 'remember',
  says: 'Remembers a fact, or changes what is under its key.',
  arguments: {
    key: { says: 'A short, stable name such as preferences/editor.' },
    value: { says: 'The fact itself; - or nothing reads it from standard input.', optional: true },
  },
  options: {
    category: { value: '<name>', says: 'Its group; user_facts unless told.' },
    tag: { value: '<word>', says: 'A word to find it by; give it once for each.', many: true },
    ttl: { value: '<time>', says: 'How long it lives: 90d, 12h or seconds, from an hour to a year; 90d unless told.' },
  },
  more: [
    'What stands on a command line is seen by other users of the machine (with ps) and kept by the shell. Hand a value that they must not see in on standard input. Secrets such as passwords belong in no memory, but in a vault.',
  ],
  examples: [
    'remember preferences/editor "Helix, everywhere"',
    'remember decisions/database --category decisions --tag project-x < decision.md',
    'remember meeting "Friday at ten" --ttl 4d',
  ],
  async run({ arguments: { key, value }, options: { category, tag, ttl } }, desk) {
    const seconds = parseLifetime(ttl);
    // Read first: while somebody types the memory is free for others.
    const text = value === undefined || value === '-' ? await valueFrom(desk) : value;
    const receipt = await (
      await desk.memory()
    ).call('remember', {
      key,
      value: text,
      ...(category !== undefined && { category }),
      ...(tag.length > 0 && { tags: [...tag] }),
      ...(seconds !== undefined && { ttl_seconds: seconds }),
    });
    const did = { created: 'Remembered', updated: 'Changed', unchanged: 'Known already, its time begins anew:' }[receipt.status];
    await desk.printResult(receipt, () => [
      `${did} ${escapeControls(receipt.key)}, ${formatTimeLeft(receipt.expires_at, desk.now())}`,
    ]);
    if (receipt.note !== undefined && !desk.json) desk.terminal.printToStderr(receipt.note);
  },
});

export const recall = command({
  name: 'recall',
  says: 'Shows a fact by its key.',
  arguments: { key: { says: 'The exact key.' } },
  more: ['In a pipe there is the value alone, as it was stored; on a terminal also who wrote it and until when it lives.'],
  examples: ['recall preferences/editor', 'recall decisions/database > decision.md'],
  async run({ arguments: { key } }, desk) {
    const fact = await (await desk.memory()).call('recall', { key });
    await desk.printResult(fact, () => (desk.terminal.outputIsTerminal ? factInFull(fact, desk) : [fact.value]));
  },
});

export const list = command({
  name: 'list',
  says: 'Lists facts, newest first.',
  options: {
    prefix: { value: '<text>', says: 'Only keys that begin so.' },
    category: { value: '<name>', says: 'Only this category.' },
    tag: { value: '<word>', says: 'Only facts with this tag.' },
    client: { value: '<name>', says: 'Only what this program wrote last.' },
    'expiring-within': { value: '<time>', says: 'Only facts that go within this time, such as 7d.' },
    sort: { value: '<order>', says: 'updated (newest first) or expires (soonest end first).' },
    limit: { value: '<number>', says: `How many at most; ${PAGE.default} unless told.` },
    all: { says: 'All of them. With --json a line for each (NDJSON).' },
    values: { says: 'With their values.' },
  },
  examples: ['list --category decisions --values', 'list --expiring-within 7d --sort expires', 'list --all --json'],
  async run({ options }, desk) {
    const { prefix, category, tag, client, sort, all, values } = options;
    const within = parseExpiryWindow(options['expiring-within']);
    const limit = all ? Infinity : (parseCount(options.limit, '--limit') ?? PAGE.default);
    const memory = await desk.memory();
    const facts: FactList['facts'] = [];
    let shown = 0;
    let cursor: string | undefined;
    do {
      const page = await memory.call('list', {
        ...(prefix !== undefined && { prefix }),
        ...(category !== undefined && { category }),
        ...(tag !== undefined && { tag }),
        ...(client !== undefined && { client }),
        ...(within !== undefined && { expiring_within: within }),
        // Another order is for the memory to refuse, with the orders that there are.
        ...(sort !== undefined && { sort: sort as 'updated' | 'expires' }),
        ...(cursor !== undefined && { cursor }),
        limit: Math.min(limit - shown, PAGE.max),
        values,
      });
      shown += page.facts.length;
      cursor = page.next_cursor;
      if (all) await desk.terminal.print(...(desk.json ? page.facts.map(jsonText) : factLines(page.facts, desk)));
      else facts.push(...page.facts);
    } while (cursor !== undefined && shown < limit);
    if (!all) await desk.printResult({ facts, more: cursor !== undefined }, () => factLines(facts, desk));
    if (desk.json) return;
    if (shown === 0) desk.terminal.printToStderr('No fact is remembered here, or none that fits.');
    if (cursor !== undefined) desk.terminal.printToStderr('There are more: --all lists all of them, --limit another number.');
  },
});

export const search = command({
  name: 'search',
  says: 'Finds facts by their words, best first.',
  arguments: { words: { says: 'Words or a phrase; quotes are not needed.', rest: true } },
  options: {
    category: { value: '<name>', says: 'Only this category.' },
    tag: { value: '<word>', says: 'Only facts with this tag.' },
    client: { value: '<name>', says: 'Only what this program wrote last.' },
    'expiring-within': { value: '<time>', says: 'Only facts that go within this time, such as 7d.' },
    limit: { value: '<number>', says: `How many at most; ${QUERY.default} unless told.` },
  },
  more: ['Each hit is told with the part that fits. recall shows a fact in full.'],
  examples: ['search frontend framework', 'search "deploy on friday" --category decisions --limit 3'],
  async run({ arguments: { words }, options }, desk) {
    const { category, tag, client } = options;
    const within = parseExpiryWindow(options['expiring-within']);
    const most = parseCount(options.limit, '--limit', QUERY.max);
    const answer = await whole(await desk.memory(), {
      query: words,
      ...(category !== undefined && { category }),
      ...(tag !== undefined && { tag }),
      ...(client !== undefined && { client }),
      ...(within !== undefined && { expiring_within: within }),
      ...(most !== undefined && { limit: most }),
    });
    await desk.printResult(answer, () =>
      answer.hits.flatMap(({ key, category: group, client: writer, updated_at: changed, snippet, expires_at: end }) => [
        `${escapeControls(key)}  ${desk.terminal.dim(`${escapeControls(group)}, by ${escapeControls(writer)} ${formatMinute(changed)}, ${formatTimeLeft(end, desk.now())}`)}`,
        ...indent(escapeControls(snippet)),
      ]),
    );
    if (desk.json) return;
    if (answer.hits.length === 0) desk.terminal.printToStderr('No fact fits these words; try fewer, or other ones.');
    if (answer.partial) desk.terminal.printToStderr('Not everything was looked through yet; ask again in a moment.');
  },
});

/** The index is built with the first question; a person waits for it rather than ask twice. */
async function whole(memory: MemoryConnection, question: OperationRequest<'search'>): Promise<SearchResponse> {
  const until = performance.now() + BUILDING_MS;
  for (;;) {
    const answer = await memory.call('search', question);
    if (!answer.partial || performance.now() > until) return answer;
  }
}

export const renew = command({
  name: 'renew',
  says: 'Gives a fact a new lifetime, category or tags.',
  arguments: { key: { says: 'The exact key.' } },
  options: {
    ttl: { value: '<time>', says: 'Its lifetime from now: 90d, 12h or seconds; 0 for the usual 90d.' },
    category: { value: '<name>', says: 'Its new group.' },
    tag: { value: '<word>', says: 'Its tags from now on; give it once for each.', many: true },
    untag: { says: 'Takes all its tags away.' },
  },
  more: ['What is not named stays as it is. To change the value, remember it again.'],
  examples: ['renew preferences/editor --ttl 365d'],
  async run({ arguments: { key }, options: { ttl, category, tag, untag } }, desk) {
    const seconds = parseLifetime(ttl);
    const fact = await (
      await desk.memory()
    ).call('patch', {
      key,
      ...(seconds !== undefined && { ttl_seconds: seconds }),
      ...(category !== undefined && { category }),
      ...((tag.length > 0 || untag) && { tags: [...tag] }),
    });
    await desk.printResult(fact, () => factLines([fact], desk));
  },
});

export const history = command({
  name: 'history',
  says: 'Shows what stood under a key before, newest first.',
  arguments: { key: { says: 'The exact key.' } },
  async run({ arguments: { key } }, desk) {
    const answer = await (await desk.memory()).call('history', { key });
    await desk.printResult(answer, () =>
      answer.versions.flatMap(({ value, category, tags, written_at: written, expires_at: end, ...signed }) => [
        [
          formatMinute(written),
          formatWriter(signed),
          escapeControls(category),
          ...tagged(tags),
          formatTimeLeft(end, desk.now()),
        ].join('  '),
        ...indent(escapeControls(value)),
      ]),
    );
    if (!desk.json && answer.versions.length === 0) desk.terminal.printToStderr('It was never changed.');
  },
});

async function valueFrom(desk: CommandContext): Promise<string> {
  if (desk.terminal.inputIsTerminal) desk.terminal.printToStderr('Type the value, and end it with Ctrl+D on a line of its own:');
  const bytes = await desk.terminal.read(MOST_READ);
  if (!bytes)
    throw new Failure(
      'invalid_input',
      `value is longer than ${VALUE_BYTES / 1024} KiB; keep the essence here and the rest in a file.`,
    );
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new Failure('invalid_input', 'value is not UTF-8; hand it in as text in that encoding.', { cause });
  }
}

const tagged = (tags: readonly string[]): string[] =>
  tags.length === 0 ? [] : [tags.map((tag) => `#${escapeControls(tag)}`).join(' ')];

function factInFull(
  { key, value, category, tags, created_at, updated_at, expires_at, ...signed }: FactDetail,
  desk: CommandContext,
): string[] {
  const about = [
    ['category', escapeControls(category)],
    ...tagged(tags).map((words) => ['tags', words]),
    [
      'written',
      `${formatMinute(updated_at)} by ${formatWriter(signed)}${created_at === updated_at ? '' : `, first ${formatMinute(created_at)}`}`,
    ],
    ['lives', formatTimeLeft(expires_at, desk.now())],
  ];
  return [
    escapeControls(key),
    '',
    ...indent(escapeControls(value)),
    '',
    ...columns(about).map((line) => desk.terminal.dim(line)),
  ];
}

function factLines(facts: FactList['facts'], desk: CommandContext): string[] {
  const rows = columns(
    facts.map(({ key, category, tags, expires_at, ...signed }) => [
      escapeControls(key),
      escapeControls(category),
      formatTimeLeft(expires_at, desk.now()),
      formatWriter(signed),
      ...tagged(tags),
    ]),
  );
  return facts.flatMap(({ value }, at) => [rows[at] ?? '', ...(value === undefined ? [] : indent(escapeControls(value)))]);
}
