import { writeFileSync } from 'node:fs';

/**
 * Excludes the RAM of this process and its children from core dumps on Linux, because a core dump would contain the key and
 * decrypted facts (R-KEY-13). On other systems the owner must limit core dumps.
 */
export function excludeFromCoreDumps(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0');
  } catch {
    // Ignore the error, because only Linux has this file.
  }
}
