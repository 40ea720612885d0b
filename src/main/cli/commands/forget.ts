import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { escapeControls, formatCount, formatEntries } from '../layout.ts';
import { parseTime } from '../values.ts';

export const forget = command({
  name: 'forget',
  description: 'Deletes entries permanently, including their history and their bytes on disk.',
  arguments: {
    scope: {
      description:
        'key:<key>, prefix:<text>, category:<name>, tag:<tag>, client:<name>, facts, packs, pipelines, pack:<id>, pipeline:<id> or all.',
    },
  },
  options: {
    'dry-run': { description: 'Shows how many entries would be deleted, without deleting them.' },
    yes: { description: 'Skips the confirmation. Required without a terminal, except for a scope that starts with `key:`.' },
  },
  details: [
    'There is no undo. The scopes `all`, `facts`, `packs`, `pipelines` and `category:` also work while the key is locked or lost.',
    'The text after the colon must match exactly, but categories ignore case. Quote the scope if it contains spaces or shell characters.',
  ],
  examples: ['forget key:preferences/editor', 'forget category:decisions --dry-run', 'forget "prefix:project x/" --yes'],
  async run({ arguments: { scope }, options }, context) {
    const count = async () => context.call('forget', { scope, dry_run: true });
    if (options['dry-run']) {
      const receipt = await count();
      await context.printResult(receipt, () => [`${formatEntries(receipt.deleted)} would be forgotten.`]);
      return exits.done.code;
    }
    await context.validateInput('forget', { scope });
    const question = async (): Promise<string> => `Forget ${formatEntries((await count()).deleted)}?`;
    if (!(await context.confirm(options.yes || scope.startsWith('key:'), question))) return exits.failed.code;
    const receipt = await context.call('forget', { scope });
    const { deleted, purged, reason, older_backups: older } = receipt;
    await context.printResult(receipt, () => [
      `Forgot ${formatEntries(deleted)}.`,
      ...(deleted > 0 && reason === 'database_copies'
        ? [
            'The database server can still have their sealed bytes in its pages, its log or its copies. To make these bytes unreadable, rotate the key.',
          ]
        : []),
      ...(purged || reason !== undefined
        ? []
        : [
            'Because of a disk problem, some bytes of the deleted entries are still in the file. They will be removed when the disk works again.',
          ]),
      ...(deleted > 0 && older > 0
        ? [
            `${formatCount(older, 'older backup')} may still contain sealed copies of these entries. If you restore a backup, the entries are deleted again.`,
          ]
        : []),
    ]);
    return exits.done.code;
  },
});

export const undo = command({
  name: 'undo',
  description: 'Undoes everything that one client wrote since a given time.',
  arguments: { client: { description: "The client's name, as shown by the `activity` command." } },
  options: {
    since: { value: '<time>', description: 'Start time: 2h (ago) or 2026-11-18T09:00 (required).' },
    until: { value: '<time>', description: 'End time. Default: now.' },
    'dry-run': { description: 'Shows what would be undone, without changing anything.' },
    yes: { description: 'Skips the confirmation. Required without a terminal.' },
  },
  details: [
    'Forgets the facts that the client created, and restores the facts that the client changed. The same applies to the pipelines of the client, and to facts that these pipelines wrote when other clients ran them.',
  ],
  examples: ['undo openclaw --since 2h --dry-run', 'undo "Claude Desktop" --since 2026-11-18T09:00'],
  async run({ arguments: { client }, options }, context) {
    const which = {
      client,
      since: parseTime(options.since, '--since', context.now),
      ...(options.until !== undefined && { until: parseTime(options.until, '--until', context.now) }),
    };
    await context.validateInput('undo', which);
    const dry = options['dry-run'];
    const question = async (): Promise<string> => {
      const { removed, restored } = await context.call('undo', { ...which, dry_run: true });
      return `Forget ${formatCount(removed, 'fact')} created by ${escapeControls(client)}, and restore ${formatCount(restored, 'fact')}?`;
    };
    if (!dry && !(await context.confirm(options.yes, question))) return exits.failed.code;
    const receipt = await context.call('undo', { ...which, dry_run: dry });
    const { removed, restored, skipped, pipelines } = receipt;
    const pipelineLines = (ids: readonly string[] = [], change: string): string[] =>
      ids.map((id) => `Pipeline ${escapeControls(id)}: ${dry ? 'would be ' : ''}${change}.`);
    const unchanged = [...skipped, ...(pipelines?.skipped ?? []).map((id) => `Pipeline ${id}`)];
    await context.printResult(receipt, () => [
      dry
        ? `${formatCount(removed, 'fact')} would be forgotten, and ${restored.toLocaleString('en-US')} restored.`
        : `Forgot ${formatCount(removed, 'fact')}, and restored ${restored.toLocaleString('en-US')}.`,
      ...pipelineLines(pipelines?.removed, 'deleted'),
      ...pipelineLines(pipelines?.restored, 'restored'),
      ...unchanged.map((name) => `${escapeControls(name)} was not changed, because its earlier version no longer exists.`),
    ]);
    return exits.done.code;
  },
});
