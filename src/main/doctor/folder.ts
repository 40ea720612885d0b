import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { dirname, join } from 'node:path';
import { packFolderOf } from '../own-packs/pack-file.ts';
import { bad, type Finding, ok } from './finding.ts';

const SHOWN = 5;

/** Whether nobody but the owner can look into it. It is not made here. */
export function folderFindings(folder: string): Finding[] {
  const stats = look(folder);
  if (stats === undefined) return [ok('folder', `${folder} is made at the first start.`)];
  if (stats === 'hidden') {
    return [bad('folder', `${folder} cannot be read.`, 'Set HELMDECK_DATA_DIR to a folder of your own.')];
  }
  if (!stats.isDirectory()) {
    return [bad('folder', `${folder} is a link, or no folder at all.`, 'Set HELMDECK_DATA_DIR to the real folder.')];
  }
  if (process.platform === 'win32') return [ok('folder', folder)];
  if (stats.uid !== process.getuid?.()) {
    return [bad('folder', `${folder} belongs to another user.`, 'Set HELMDECK_DATA_DIR to a folder of your own.')];
  }
  if ((stats.mode & 0o077) !== 0) return [bad('folder', `Others may look into ${folder}.`, `Run: chmod 700 ${quoted(folder)}`)];
  const inside = entriesIn(folder);
  const foreign = inside.filter(({ stats: { uid } }) => uid !== stats.uid).map(({ path }) => path);
  const open = inside.filter((entry) => isOpen(entry, packFolderOf(folder))).map(({ path }) => path);
  return [
    ok('folder', `${folder}, for you alone.`),
    ...(foreign.length > 0
      ? [
          bad(
            'folder',
            `In it belong to another user: ${some(foreign)}.`,
            'Have them given to you with chown, or move them away.',
          ),
        ]
      : []),
    ...(open.length > 0
      ? [bad('folder', `Others may read, by their own permissions: ${some(open)}.`, `Run: chmod -R go= ${quoted(folder)}`)]
      : []),
  ];
}

function look(path: string): Stats | 'hidden' | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return 'hidden';
  }
}

/** Own packs hold no secret, and stand as an editor leaves them: what counts there is who may write. */
function isOpen({ path, stats }: Inside, packs: string): boolean {
  const others = path === packs || dirname(path) === packs ? 0o022 : 0o077;
  return !stats.isSymbolicLink() && (stats.mode & others) !== 0;
}

interface Inside {
  readonly path: string;
  readonly stats: Stats;
}

/** All that lies below it, at most one level deep: the program makes no more. */
function entriesIn(folder: string): Inside[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const stats = look(path);
    if (stats === undefined || stats === 'hidden') return [];
    return [{ path, stats }, ...(stats.isDirectory() ? below(path) : [])];
  });
}

const below = (folder: string): Inside[] =>
  readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const stats = look(path);
    return stats === undefined || stats === 'hidden' ? [] : [{ path, stats }];
  });

const some = (paths: readonly string[]): string =>
  paths.slice(0, SHOWN).join(', ') + (paths.length > SHOWN ? ` and ${paths.length - SHOWN} more` : '');

const quoted = (path: string): string => (/^[\w/.-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`);
