import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { killAfter, runWorker, startWorker } from './child.ts';
import { type Check, mustBeEmpty, type Surroundings } from './lane.ts';
import { counted, counting, killing, needStrace } from './strace.ts';
import { contents, makeOld, STATEMENTS } from './tasks/migrating.ts';

const NEVER = STATEMENTS.length + 1;
const CALLS = ['pwrite64', 'fsync', 'ftruncate', 'unlink'] as const;

export const migrationKilled: Check = {
  name: 'R-DUR-07 a migration killed after each of its statements',
  async run(here) {
    const site = await prepare(here);
    for (let statement = 0; statement <= STATEMENTS.length; statement += 1) {
      await site.kill(`after statement ${statement}`, { dieAfter: statement });
    }
    return site.verdict();
  },
};

export const migrationKilledInside: Check = {
  name: 'R-DUR-07 a migration killed at its system calls',
  async run(here) {
    needStrace();
    const site = await prepare(here);
    const calls = join(here.folder, 'calls');
    await runWorker('migrate and die', { file: site.fresh(), dieAfter: NEVER }, { inside: counting(calls, CALLS) });
    for (const call of CALLS) {
      const most = counted(calls).get(call) ?? 0;
      const points = Math.min(most, here.large ? 60 : 4);
      for (let point = 0; point < points; point += 1) {
        const at = 1 + Math.floor((point * most) / points);
        await site.kill(`at ${call} ${at}`, { inside: killing(call, at) });
      }
    }
    return site.verdict();
  },
};

/** The files to migrate, and their allowed contents afterwards. */
async function prepare({ folder }: Surroundings) {
  const original = join(folder, 'original');
  mkdirSync(original);
  makeOld(join(original, 'memory.db'));
  let made = 0;
  const fresh = (): string => {
    made += 1;
    cpSync(original, join(folder, `${made}`), { recursive: true });
    return join(folder, `${made}`, 'memory.db');
  };
  const old = contents(join(original, 'memory.db'));
  const migrated = fresh();
  await runWorker('migrate and die', { file: migrated, dieAfter: NEVER });
  const done = contents(migrated);
  if (done === old) throw new Error('the migration changes nothing');

  const wrong: string[] = [];
  const found = { old: 0, new: 0 };
  return {
    fresh,
    async kill(
      when: string,
      { dieAfter = NEVER, inside = [] }: { dieAfter?: number; inside?: readonly string[] },
    ): Promise<void> {
      const file = fresh();
      const worker = await startWorker('migrate and die', { file, dieAfter }, { inside });
      const { signal, code, stderr } = await killAfter(worker, 60_000);
      if (signal !== 'SIGKILL' && code !== 137) wrong.push(`${when}: the worker was not killed (${code}): ${stderr.slice(-300)}`);
      const now = contents(file);
      if (now === old) found.old += 1;
      else if (now === done) found.new += 1;
      else wrong.push(`${when}: neither the old nor the new schema`);
      wrong.push(...falseBackups(join(file, '..', 'backups'), old).map((problem) => `${when}: ${problem}`));
      await runWorker('migrate and die', { file, dieAfter: NEVER });
      if (contents(file) !== done) wrong.push(`${when}: the next start did not complete it`);
    },
    verdict(): string {
      const figures = `${found.old + found.new + wrong.length} kills, ${found.old} left the old schema and ${found.new} the new one`;
      mustBeEmpty(wrong, figures);
      return `${figures}: never a mixture, and the next start completed each`;
    },
  };
}

/** The copies from before the migration equal the old file, or have no final name. */
function falseBackups(folder: string, old: string): string[] {
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.db')) : [];
  return names.filter((name) => contents(join(folder, name)) !== old).map((name) => `${name} is not a copy of the old file`);
}
