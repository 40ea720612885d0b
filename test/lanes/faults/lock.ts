import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Child, startWorker } from './child.ts';
import { type Check, mustBeEmpty } from './lane.ts';

const STARTS = 20;
/** A second start must be refused at once. The limit allows for a slow machine, but not for SQLite's own timeout of five seconds. */
const REFUSED_WITHIN_MS = 4000;

export const oneHolder: Check = {
  name: 'R-DUR-12 twenty starts at once on one folder',
  async run({ large, folder }) {
    const rounds = large ? 50 : 4;
    const wrong: string[] = [];
    let slowest = 0;
    for (let round = 1; round <= rounds; round += 1) {
      // Every other round starts without a folder. The others follow a killed holder.
      const memory = join(folder, `memory-${Math.ceil(round / 2)}`);
      const signal = join(folder, `start-${round}`);
      const answers: { how: string; ms: number }[] = [];
      const { promise: answered, resolve } = Promise.withResolvers<void>();
      const late = Promise.withResolvers<void>();
      const start = (): Promise<Child> =>
        startWorker(
          'hold the folder',
          { folder: memory, signal },
          {
            hear(line) {
              if (line.says !== 'done') return;
              answers.push({ how: String(line.figures['how']), ms: Number(line.figures['ms']) });
              if (answers.length === STARTS) resolve();
              if (answers.length > STARTS) late.resolve();
            },
          },
        );
      const children = await Promise.all(Array.from({ length: STARTS }, start));
      writeFileSync(signal, '');
      await Promise.race([answered, Promise.all(children.map(({ ended }) => ended))]);
      // Time one more start alone, because twenty starts at once measure the machine.
      const last = await start();
      await Promise.race([late.promise, last.ended]);
      children.push(last);
      for (const child of children) child.kill();
      await Promise.all(children.map(({ ended }) => ended));

      const holders = answers.filter(({ how }) => how === 'holds').length;
      if (holders !== 1) wrong.push(`round ${round}: ${holders} held the folder`);
      const refused = answers.filter(({ how }) => how !== 'holds');
      const alone = answers[STARTS]?.ms ?? Infinity;
      slowest = Math.max(slowest, alone);
      // Compared with one start alone: the starts share the processor.
      const among = Math.max(...refused.map(({ ms }) => ms));
      if (among > Math.max(REFUSED_WITHIN_MS, 2 * STARTS * alone)) wrong.push(`round ${round}: refused after ${among} ms`);
      for (const { how } of refused) if (how !== 'unavailable') wrong.push(`round ${round}: refused with ${how}`);
    }
    if (slowest > REFUSED_WITHIN_MS) wrong.push(`a refusal took ${slowest} ms`);
    const figures = `${rounds} rounds of ${STARTS}, slowest refusal ${slowest} ms`;
    mustBeEmpty(wrong, figures);
    return `${figures}: one holder each time, also after the last was killed`;
  },
};
