import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { formatCount, escapeControls } from '../layout.ts';
import { parseTime } from '../values.ts';

export const forget = command({
  name: 'forget',
  says: 'Deletes for good, history and bytes included.',
  arguments: {
    scope: {
      says: 'key:<key>, prefix:<text>, category:<name>, tag:<tag>, client:<name>, facts, packs, pipelines, pack:<id>, pipeline:<id> or all.',
    },
  },
  options: {
    'dry-run': { says: 'Counts what would go, and deletes nothing.' },
    yes: { says: 'Does not ask; needed for all but key: where nobody can be asked.' },
  },
  more: [
    'There is no undo. all, facts, packs, pipelines and category: work also when the key of the memory is locked or lost.',
    'The text after the colon is matched exactly; only a category is lower-cased. Quote it where the shell would read it.',
  ],
  examples: ['forget key:preferences/editor', 'forget category:decisions --dry-run', 'forget "prefix:project x/" --yes'],
  async run({ arguments: { scope }, options }, desk) {
    const counting = async () => (await desk.memory()).call('forget', { scope, dry_run: true });
    if (options['dry-run']) {
      const receipt = await counting();
      await desk.printResult(receipt, () => [`${entries(receipt.deleted)} would be forgotten.`]);
      return exits.done.code;
    }
    await desk.validateInput('forget', { scope });
    const question = async (): Promise<string> => `Forget ${entries((await counting()).deleted)}?`;
    if (!(await desk.confirm(options.yes || scope.startsWith('key:'), question))) return declined(desk);
    const receipt = await (await desk.memory()).call('forget', { scope });
    const { deleted, purged, older_backups: older } = receipt;
    await desk.printResult(receipt, () => [
      `Forgot ${entries(deleted)}.`,
      ...(purged ? [] : ['Some of their bytes are still in the file; they go as soon as its disk lets them.']),
      ...(deleted > 0 && older > 0
        ? [`${formatCount(older, 'older backup')} may still hold sealed copies; a restore forgets them again.`]
        : []),
    ]);
    return exits.done.code;
  },
});

export const undo = command({
  name: 'undo',
  says: 'Takes back what one program wrote since a time.',
  arguments: { client: { says: 'The program, as activity shows it.' } },
  options: {
    since: { value: '<time>', says: 'From when on: 2h ago, or 2026-11-18T09:00. It must be given.' },
    until: { value: '<time>', says: 'Leaves alone what it wrote after this; up to now unless told.' },
    'dry-run': { says: 'Counts what would be taken back, and changes nothing.' },
    yes: { says: 'Does not ask; needed where nobody can be asked.' },
  },
  more: [
    'Facts that it made are forgotten; facts that it changed say again what they said before. So do pipelines, and what its pipelines wrote when others ran them.',
  ],
  examples: ['undo openclaw --since 2h --dry-run', 'undo "Claude Desktop" --since 2026-11-18T09:00'],
  async run({ arguments: { client }, options }, desk) {
    const which = {
      client,
      since: parseTime(options.since, '--since', desk.now()),
      ...(options.until !== undefined && { until: parseTime(options.until, '--until', desk.now()) }),
    };
    await desk.validateInput('undo', which);
    const foreseen = async (): Promise<string> => {
      const { removed, restored } = await (await desk.memory()).call('undo', { ...which, dry_run: true });
      return `${formatCount(removed, 'fact')} that ${escapeControls(client)} made, and change ${formatCount(restored, 'fact')} back`;
    };
    if (!options['dry-run'] && !(await desk.confirm(options.yes, async () => `Forget ${await foreseen()}?`)))
      return declined(desk);
    const receipt = await (await desk.memory()).call('undo', { ...which, dry_run: options['dry-run'] });
    const { removed, restored, skipped, pipelines } = receipt;
    await desk.printResult(receipt, () => [
      options['dry-run']
        ? `${formatCount(removed, 'fact')} would be forgotten, and ${restored.toLocaleString('en-US')} changed back.`
        : `Forgot ${formatCount(removed, 'fact')}, and changed ${restored.toLocaleString('en-US')} back.`,
      ...skipped.map((key) => `${escapeControls(key)} stays as it is: what it said before is gone.`),
      ...(pipelines?.removed ?? []).map(
        (id) => `Pipeline ${escapeControls(id)}: ${options['dry-run'] ? 'would be deleted' : 'deleted'}.`,
      ),
      ...(pipelines?.restored ?? []).map(
        (id) => `Pipeline ${escapeControls(id)}: ${options['dry-run'] ? 'would be changed' : 'changed'} back.`,
      ),
      ...(pipelines?.skipped ?? []).map((id) => `Pipeline ${escapeControls(id)} stays as it is: the version before is gone.`),
    ]);
    return exits.done.code;
  },
});

const entries = (count: number): string => formatCount(count, 'entry', 'entries');

export function declined(desk: { terminal: { printToStderr(line: string): void } }): number {
  desk.terminal.printToStderr('Nothing was changed.');
  return exits.failed.code;
}
