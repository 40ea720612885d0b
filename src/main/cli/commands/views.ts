import type { Activity } from '../../../contract/history.ts';
import { PAGE } from '../../../contract/limits.ts';
import { command } from '../command.ts';
import { columns, formatCount, indent, escapeControls, formatWriter } from '../layout.ts';
import { formatMinute, formatTimeLeft } from '../times.ts';
import { parseCount } from '../values.ts';

export const memory = command({
  name: 'memory',
  says: 'Shows the table of contents: categories, counts and newest keys.',
  async run(_typed, desk) {
    const answer = await (await desk.memory()).call('myMemory', {});
    await desk.printResult(answer, () => [
      ...columns(
        answer.categories.map(({ name, count, recent_keys: keys }) => [name, String(count), keys.map(escapeControls).join(', ')]),
      ),
      ...(answer.more_categories === undefined
        ? []
        : [`and ${formatCount(answer.more_categories, 'more category', 'more categories')}`]),
    ]);
    if (!desk.json && answer.note !== undefined) desk.terminal.printToStderr(answer.note);
  },
});

export const context = command({
  name: 'context',
  says: 'Shows the newest facts with their values, as an agent loads them.',
  async run(_typed, desk) {
    const answer = await (await desk.memory()).call('context', {});
    await desk.printResult(answer, () =>
      answer.categories.flatMap(({ name, facts }) => [
        name,
        ...facts.flatMap(({ key, value, expires_at: end }) => [
          `  ${escapeControls(key)}  ${desk.terminal.dim(formatTimeLeft(end, desk.now()))}`,
          ...indent(escapeControls(value), '    '),
        ]),
      ]),
    );
    if (desk.json) return;
    if (answer.partial) desk.terminal.printToStderr('There is more than fits: list --all shows all of it.');
    if (answer.note !== undefined) desk.terminal.printToStderr(answer.note);
  },
});

export const activity = command({
  name: 'activity',
  says: 'Shows who wrote or forgot what, newest first.',
  options: { limit: { value: '<number>', says: `How many rows at most; ${PAGE.default} unless told.` } },
  async run({ options }, desk) {
    const limit = parseCount(options.limit, '--limit') ?? PAGE.default;
    const at = await desk.memory();
    const rows: Activity['activity'] = [];
    let cursor: string | undefined;
    do {
      const size = Math.min(limit - rows.length, PAGE.max);
      const page = await at.call('activity', { limit: size, ...(cursor !== undefined && { cursor }) });
      rows.push(...page.activity);
      cursor = page.next_cursor;
    } while (cursor !== undefined && rows.length < limit);
    await desk.printResult({ activity: rows, more: cursor !== undefined }, () =>
      columns(
        rows.map((row) => [
          formatMinute(row.at),
          formatWriter(row),
          row.operation,
          escapeControls(row.key ?? row.scope ?? row.target ?? ''),
        ]),
      ),
    );
    if (!desk.json && rows.length === 0) desk.terminal.printToStderr('Nothing was written or forgotten in the last 30 days.');
  },
});

export const callers = command({
  name: 'callers',
  says: 'Shows whose memories there are, and how many facts each holds.',
  async run(_typed, desk) {
    const answer = await (await desk.memory()).call('callers', {});
    await desk.printResult(answer, () =>
      columns(answer.callers.map(({ namespace, count }) => [escapeControls(namespace), formatCount(count, 'fact')])),
    );
  },
});
