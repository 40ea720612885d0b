import type { InboxItem } from '../../../contract/inbox.ts';
import { PAGE } from '../../../contract/limits.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { UsageError } from '../errors.ts';
import { exits } from '../exit-codes.ts';
import { escapeControls, formatCount, formatMark, formatWriter, indent } from '../layout.ts';
import { formatTimeLeft } from '../times.ts';
import { given, parseLifetime } from '../values.ts';

export const inboxList = command({
  name: 'inbox',
  description: 'Shows the writes that wait until you accept them.',
  details: [
    'Everything that a quarantined client writes waits here, and so do statements from your prompts, if you let a client propose them. No client can read a write that waits. It is deleted after a week.',
    '`inbox accept` does what a write asks for, and `inbox drop` deletes it.',
  ],
  async run(_typed, context) {
    const items: InboxItem[] = [];
    let cursor: string | undefined;
    do {
      const page = await context.call('inbox', { limit: PAGE.max, ...given({ cursor }) });
      items.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    await context.printResult({ items }, () => items.flatMap((item) => itemLines(item, context)));
    if (items.length === 0) context.hint('Nothing waits for your approval.');
    else context.hint('Accept a write with: helmdeck-memory inbox accept <id>', 'Drop it with: helmdeck-memory inbox drop <id>');
  },
});

const id = { description: 'Id of the write, as shown by `inbox`.' };

export const inboxAccept = command({
  name: 'inbox accept',
  description: 'Does what a client asked for, in the name of this client.',
  arguments: { id },
  options: {
    key: { value: '<key>', description: 'Stores the fact under this key instead.' },
    value: { value: '<text>', description: 'Stores this value instead.' },
    category: { value: '<name>', description: 'Stores the fact in this category instead.' },
    tag: { value: '<word>', description: 'Stores the fact with this tag instead of its own tags. Can be repeated.', many: true },
    ttl: { value: '<time>', description: 'Lifetime, such as 90d.' },
  },
  examples: ['inbox accept 0f3a9c52d1e84b7602c5a9e1d4f7b836', 'inbox accept 0f3a9c52d1e84b7602c5a9e1d4f7b836 --key tools/editor'],
  async run({ arguments: typed, options: { key, value, category, tag, ttl } }, context) {
    const tags = tag.length > 0 ? [...tag] : undefined;
    const changes = given({ key, value, category, tags, ttl_seconds: parseLifetime(ttl) });
    const answer = await context.call('acceptInbox', { id: typed.id, ...changes });
    await context.printResult(answer, () => [
      `Accepted: ${answer.operation} by ${escapeControls(answer.client)}.`,
      ...(answer.overwrote === undefined
        ? []
        : ['It replaced this value, which is in the history of the fact:', ...indent(escapeControls(answer.overwrote))]),
    ]);
  },
});

export const inboxDrop = command({
  name: 'inbox drop',
  description: 'Deletes writes that wait, so that they are never done.',
  arguments: { id: { ...id, optional: true } },
  options: {
    all: { description: 'Drops everything that waits.' },
    client: { value: '<name>', description: 'Drops everything of this client that waits.' },
    yes: { description: 'Skips the confirmation. Required without a terminal, except for a single id.' },
  },
  examples: ['inbox drop 0f3a9c52d1e84b7602c5a9e1d4f7b836', 'inbox drop --client openclaw', 'inbox drop --all --yes'],
  async run({ arguments: typed, options: { all, client, yes } }, context) {
    const which = given({ id: typed.id, all: all || undefined, client });
    if (Object.keys(which).length !== 1) throw new UsageError('Name one write by its id, or give either --all or --client.');
    const whose = client === undefined ? 'everything' : `everything of ${escapeControls(client)}`;
    if (!(await context.confirm(yes || typed.id !== undefined, () => `Drop ${whose} that waits?`))) return exits.failed.code;
    const answer = await context.call('dropInbox', which);
    await context.printResult(answer, () => [`Dropped ${formatCount(answer.dropped, 'write')}.`]);
    return exits.done.code;
  },
});

function itemLines(item: InboxItem, { now, terminal }: CommandContext): string[] {
  const { id: name, operation, source, key, value, scope, input, current, marked, expires_at: end } = item;
  const what = key ?? scope ?? '';
  const text = operation === 'remember' ? value : key === undefined && scope === undefined ? input : undefined;
  return [
    `${name}  ${operation} ${escapeControls(what)}`.trimEnd(),
    `  ${source === 'capture' ? 'from a prompt to' : 'by'} ${formatWriter(item)}, ${terminal.dim(formatTimeLeft(end, now))}`,
    ...(text === undefined ? [] : indent(escapeControls(text), '    ')),
    ...formatMark(marked).map((warning) => `  ${warning}`),
    ...(current === undefined || current === value ? [] : ['  stored now:', ...indent(escapeControls(current), '    ')]),
  ];
}
