import { writeFileSync } from 'node:fs';

/**
 * A core dump would contain the key and opened facts (R-KEY-13). On Linux this excludes the memory of this process and its
 * children from dumps. On other systems the owner must limit core dumps.
 */
export function excludeFromCoreDumps(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0');
  } catch {
    // Other systems do not have this file.
  }
}
