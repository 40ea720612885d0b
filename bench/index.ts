/**
 * Compares our code with a floor in the same run: bare SQLite with the same tables, indexes, pragmas and bytes, and a bare HTTP
 * server. A floor only writes or reads the bytes and, where needed, decrypts them.
 */
import { context } from './context.ts';
import { crowd } from './crowd.ts';
import { forgetting } from './forgetting.ts';
import { listener } from './listener.ts';
import { mcp } from './mcp.ts';
import { myMemory } from './my-memory.ts';
import { packs } from './packs.ts';
import { quota } from './quota.ts';
import { reads } from './reads.ts';
import { report, type Result } from './report.ts';
import { rotation } from './rotation.ts';
import { searchClasses } from './search-classes.ts';
import { size } from './size.ts';
import { starts } from './start.ts';
import { steady } from './steady.ts';
import { stores } from './stores.ts';
import { sweep } from './sweep.ts';
import { wire } from './wire.ts';
import { writes } from './writes.ts';

const results: Result[] = [];
// Run the rotation first, so that the garbage of other benches is not collected during one of its slices.
for (const measure of [
  rotation,
  writes,
  stores,
  reads,
  myMemory,
  packs,
  quota,
  sweep,
  forgetting,
  size,
  searchClasses,
  listener,
  mcp,
  context,
  steady,
  crowd,
  wire,
  starts,
])
  results.push(...(await measure()));
process.exitCode = report(results) ? 0 : 1;
