import { readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/**
 * Returns the root folder of the Git repository that contains a folder. For a linked worktree, whose `.git` is a file, this is the root
 * of the main repository, so that all worktrees belong to one project. Returns the folder itself outside of a repository.
 */
export function repositoryRoot(folder: string): string {
  for (let each = resolve(folder); ; each = dirname(each)) {
    const kind = kindOf(join(each, '.git'));
    if (kind === 'folder') return each;
    if (kind === 'file') return mainRepository(each) ?? each;
    if (each === dirname(each)) return resolve(folder);
  }
}

function kindOf(path: string): 'file' | 'folder' | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && (found.isDirectory() ? 'folder' : 'file');
}

/** Reads where the `.git` file of a worktree points to. The file of a submodule points to another place, and has no main repository. */
function mainRepository(worktree: string): string | undefined {
  const target = /^gitdir: (.+)$/m.exec(readFileSync(join(worktree, '.git'), 'utf8'))?.[1];
  const main = target === undefined ? undefined : /^(.+)[/\\]\.git[/\\]worktrees[/\\][^/\\]+$/.exec(resolve(worktree, target));
  return main?.[1];
}
