import type { Activity } from '../../../contract/history.ts';
import { PAGE } from '../../../contract/limits.ts';
import { command } from '../command.ts';
import { columns, formatCount, indent, escapeControls, formatWriter } from '../layout.ts';
import { formatMinute, formatTimeLeft } from '../times.ts';
import { given, parseCount } from '../values.ts';

export const memory = command({
  name: 'memory',
  description: 'Shows the categories of the memory with their fact counts and newest keys.',
  async run(_typed, context) {
    const answer = await context.call('myMemory', {});
    await context.printResult(answer, () => [
      ...columns(
        answer.categories.map(({ name, count, recent_keys: keys }) => [name, String(count), keys.map(escapeControls).join(', ')]),
      ),
      ...(answer.more_categories === undefined
        ? []
        : [`and ${formatCount(answer.more_categories, 'more category', 'more categories')}`]),
    ]);
    if (answer.note !== undefined) context.hint(answer.note);
  },
});

export const showContext = command({
  name: 'context',
  description: 'Shows the newest facts with their values, in the form that agents load.',
  async run(_typed, context) {
    const answer = await context.call('context', {});
    await context.printResult(answer, () =>
      answer.categories.flatMap(({ name, facts }) => [
        name,
        ...facts.flatMap(({ key, value, expires_at: end }) => [
          `  ${escapeControls(key)}  ${context.terminal.dim(formatTimeLeft(end, context.now))}`,
          ...indent(escapeControls(value), '    '),
        ]),
      ]),
    );
    if (answer.partial) context.hint('This view does not show all facts. To see all facts, run: helmdeck-memory list --all');
    if (answer.note !== undefined) context.hint(answer.note);
  },
});

export const activity = command({
  name: 'activity',
  description: 'Shows who wrote, forgot or was shown what, newest first.',
  options: { limit: { value: '<number>', description: `Maximum number of rows. Default: ${PAGE.default}.` } },
  async run({ options }, context) {
    const limit = parseCount(options.limit, '--limit') ?? PAGE.default;
    const rows: Activity['activity'] = [];
    let cursor: string | undefined;
    do {
      const size = Math.min(limit - rows.length, PAGE.max);
      const page = await context.call('activity', { limit: size, ...given({ cursor }) });
      rows.push(...page.activity);
      cursor = page.next_cursor;
    } while (cursor !== undefined && rows.length < limit);
    await context.printTable(
      { activity: rows, more: cursor !== undefined },
      rows.map((row) => [
        formatMinute(row.at),
        formatWriter(row),
        row.operation,
        escapeControls(row.key ?? row.scope ?? row.target ?? row.keys?.join(', ') ?? '') +
          (row.supersedes === undefined ? '' : ` in place of ${escapeControls(row.supersedes)}`),
      ]),
      'Nothing was written or forgotten in the last 30 days.',
    );
  },
});

export const callers = command({
  name: 'callers',
  description: 'Lists all memories with the number of facts in each memory.',
  async run(_typed, context) {
    const answer = await context.call('callers', {});
    await context.printTable(
      answer,
      answer.callers.map(({ namespace, count }) => [escapeControls(namespace), formatCount(count, 'fact')]),
    );
  },
});
