/**
 * Compares our code with a floor in the same run: bare SQLite with the same tables, indexes, pragmas and bytes, and a bare HTTP
 * server. A floor only writes or reads the bytes and, where needed, decrypts them.
 */
import { briefCost } from './brief-cost.ts';
import { context } from './context.ts';
import { crowd } from './crowd.ts';
import { forgetting } from './forgetting.ts';
import { hook } from './hook.ts';
import { indexBuild } from './index-build.ts';
import { listener } from './listener.ts';
import { mcp } from './mcp.ts';
import { myMemory } from './my-memory.ts';
import { packs } from './packs.ts';
import { postgres } from './postgres.ts';
import { quota } from './quota.ts';
import { reads } from './reads.ts';
import { report, resultsOf } from './report.ts';
import { rotation } from './rotation.ts';
import { searchClasses } from './search-classes.ts';
import { size } from './size.ts';
import { starts } from './start.ts';
import { steady } from './steady.ts';
import { stores } from './stores.ts';
import { sweep } from './sweep.ts';
import { vectors } from './vectors.ts';
import { wire } from './wire.ts';
import { writes } from './writes.ts';

let isMet = true;
// Run the rotation first, so that the garbage of other benches is not collected during one of its slices.
for (const measure of [
  rotation,
  writes,
  stores,
  reads,
  myMemory,
  briefCost,
  hook,
  packs,
  quota,
  sweep,
  forgetting,
  size,
  indexBuild,
  searchClasses,
  vectors,
  listener,
  mcp,
  context,
  steady,
  crowd,
  wire,
  starts,
  postgres,
])
  isMet = report(await resultsOf(measure)) && isMet;
process.exitCode = isMet ? 0 : 1;
