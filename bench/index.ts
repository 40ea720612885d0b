import { listener } from './listener.ts';
import { mcp } from './mcp.ts';
import { myMemory } from './my-memory.ts';
import { quota } from './quota.ts';
import { reads } from './reads.ts';
/**
 * What the store costs over bare SQLite: the same tables, indexes, pragmas and bytes, in the same run. A floor does nothing
 * but put the bytes there or fetch them, and where something must be opened, open it.
 */
import { report, type Result } from './report.ts';
import { rotation } from './rotation.ts';
import { size } from './size.ts';
import { starts } from './start.ts';
import { sweep } from './sweep.ts';
import { writes } from './writes.ts';

const results: Result[] = [];
for (const measure of [writes, reads, myMemory, quota, rotation, sweep, size, listener, mcp, starts])
  results.push(...(await measure()));
process.exitCode = report(results) ? 0 : 1;
