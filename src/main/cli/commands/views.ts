import type { Activity } from '../../../contract/history.ts';
import { PAGE } from '../../../contract/limits.ts';
import { command } from '../command.ts';
import { columns, counted, indented, visible, writerOf } from '../layout.ts';
import { minuteOf, timeLeft } from '../times.ts';
import { numberOf } from '../values.ts';

export const memory = command({
  name: 'memory',
  says: 'Shows the table of contents: categories, counts and newest keys.',
  async run(_typed, desk) {
    const answer = await (await desk.memory()).call('myMemory', {});
    await desk.answer(answer, () => [
      ...columns(
        answer.categories.map(({ name, count, recent_keys: keys }) => [name, String(count), keys.map(visible).join(', ')]),
      ),
      ...(answer.more_categories === undefined
        ? []
        : [`and ${counted(answer.more_categories, 'more category', 'more categories')}`]),
    ]);
    if (!desk.json && answer.note !== undefined) desk.terminal.tell(answer.note);
  },
});

export const context = command({
  name: 'context',
  says: 'Shows the newest facts with their values, as an agent loads them.',
  async run(_typed, desk) {
    const answer = await (await desk.memory()).call('context', {});
    await desk.answer(answer, () =>
      answer.categories.flatMap(({ name, facts }) => [
        name,
        ...facts.flatMap(({ key, value, expires_at: end }) => [
          `  ${visible(key)}  ${desk.terminal.quiet(timeLeft(end, desk.now()))}`,
          ...indented(visible(value), '    '),
        ]),
      ]),
    );
    if (desk.json) return;
    if (answer.partial) desk.terminal.tell('There is more than fits: list --all shows all of it.');
    if (answer.note !== undefined) desk.terminal.tell(answer.note);
  },
});

export const activity = command({
  name: 'activity',
  says: 'Shows who wrote or forgot what, newest first.',
  options: { limit: { value: '<number>', says: `How many rows at most; ${PAGE.default} unless told.` } },
  async run({ options }, desk) {
    const limit = numberOf(options.limit, '--limit') ?? PAGE.default;
    const at = await desk.memory();
    const rows: Activity['activity'] = [];
    let cursor: string | undefined;
    do {
      const size = Math.min(limit - rows.length, PAGE.most);
      const page = await at.call('activity', { limit: size, ...(cursor !== undefined && { cursor }) });
      rows.push(...page.activity);
      cursor = page.next_cursor;
    } while (cursor !== undefined && rows.length < limit);
    await desk.answer({ activity: rows, more: cursor !== undefined }, () =>
      columns(
        rows.map((row) => [minuteOf(row.at), writerOf(row), row.operation, visible(row.key ?? row.scope ?? row.target ?? '')]),
      ),
    );
    if (!desk.json && rows.length === 0) desk.terminal.tell('Nothing was written or forgotten in the last 30 days.');
  },
});

export const callers = command({
  name: 'callers',
  says: 'Shows whose memories there are, and how many facts each holds.',
  async run(_typed, desk) {
    const answer = await (await desk.memory()).call('callers', {});
    await desk.answer(answer, () =>
      columns(answer.callers.map(({ namespace, count }) => [visible(namespace), counted(count, 'fact')])),
    );
  },
});
