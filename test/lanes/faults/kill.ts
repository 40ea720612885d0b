import { join } from 'node:path';
import { killAfter, startWorker } from './child.ts';
import { type Check, mustBeEmpty } from './lane.ts';
import { openKeptStore } from './memory.ts';
import { Oracle } from './oracle.ts';
import { randomFrom } from './random.ts';

/** All kills use the same folder. */
export const killed: Check = {
  name: 'R-DUR-01 R-DUR-12 R-SEAL-01 killed at random moments under eight writers',
  async run({ large, seed, folder }) {
    const kills = large ? 500 : 60;
    const random = randomFrom(seed);
    const oracle = new Oracle();
    const memory = join(folder, 'memory');
    for (let kill = 1; kill <= kills && oracle.violations.length === 0; kill += 1) {
      const given = { folder: memory, seed: random.between(1, 1e9), firstId: oracle.lastId + 1 };
      const worker = await startWorker('write until killed', given, { hear: (line) => oracle.hear(line) });
      const ended = await killAfter(worker, random.between(0, 800));
      if (ended.signal !== 'SIGKILL') oracle.violations.push(`the worker exited before the kill: ${ended.stderr.slice(-500)}`);
      oracle.lostSight();
      await using store = await openKeptStore(memory);
      await oracle.examine(store);
    }
    const figures = `${kills} kills, ${oracle.acknowledged} writes acknowledged, ${oracle.refused.size} kinds of refusal, seed ${seed}`;
    mustBeEmpty([...oracle.violations, ...[...oracle.refused.keys()].map((code) => `refused with ${code}`)], figures);
    return `${figures}: 0 lost, 0 wrong, 0 resurrected`;
  },
};
