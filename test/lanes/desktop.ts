import { buildIfStale } from '../../src/main/roots/start/build-if-stale.ts';
import { fences } from './desktop/fences.ts';
import { life } from './desktop/life.ts';
import { packed } from './desktop/packed.ts';
import { use } from './desktop/use.ts';
import { runLane } from './faults/lane.ts';

const unbuilt = await buildIfStale(process.cwd(), console.log);
if (unbuilt !== undefined) throw new Error(unbuilt);
const [wanted = ''] = process.argv.slice(2);
const checks = [...use, ...life, ...fences, ...packed].filter(({ name }) => name.includes(wanted));
const passed = await runLane(checks, { large: false, seed: 0 });
process.exit(passed ? 0 : 1);
