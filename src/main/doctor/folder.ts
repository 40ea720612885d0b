import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { dirname, join } from 'node:path';
import { packFolderOf } from '../own-packs/pack-file.ts';
import { bad, type Finding, ok } from './finding.ts';

const MAX_PATHS_SHOWN = 5;

/** Checks that only the owner can access the data folder. Does not create the folder. */
export function folderFindings(folder: string): Finding[] {
  const stats = tryStat(folder);
  if (stats === undefined) return [ok('folder', `${folder} does not exist yet. The first start creates it.`)];
  if (stats === 'unreadable') {
    return [bad('folder', `${folder} cannot be read.`, 'Set HELMDECK_DATA_DIR to a folder of your own.')];
  }
  if (!stats.isDirectory()) {
    return [bad('folder', `${folder} is a link or not a folder.`, 'Set HELMDECK_DATA_DIR to the real folder.')];
  }
  if (process.platform === 'win32') return [ok('folder', folder)];
  if (stats.uid !== process.getuid?.()) {
    return [bad('folder', `${folder} belongs to another user.`, 'Set HELMDECK_DATA_DIR to a folder of your own.')];
  }
  if ((stats.mode & 0o077) !== 0)
    return [bad('folder', `Other users can open ${folder}.`, `Run: chmod 700 ${shellQuoted(folder)}`)];
  const entries = listEntries(folder, 2);
  const foreign = entries.filter((entry) => entry.stats.uid !== stats.uid).map(({ path }) => path);
  const open = entries.filter((entry) => isTooOpen(entry, packFolderOf(folder))).map(({ path }) => path);
  return [
    ok('folder', `Only you can access ${folder}.`),
    ...(foreign.length > 0
      ? [
          bad(
            'folder',
            `These files belong to another user: ${list(foreign)}.`,
            'Change the owner of these files with chown, or move the files away.',
          ),
        ]
      : []),
    ...(open.length > 0
      ? [bad('folder', `Other users can access these files: ${list(open)}.`, `Run: chmod -R go= ${shellQuoted(folder)}`)]
      : []),
  ];
}

function tryStat(path: string): Stats | 'unreadable' | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return 'unreadable';
  }
}

/**
 * Whether other users have too much access to an entry. Packs contain no secrets, so other users are allowed to read
 * packs, but not to write them.
 */
function isTooOpen({ path, stats }: Entry, packs: string): boolean {
  const others = path === packs || dirname(path) === packs ? 0o022 : 0o077;
  return !stats.isSymbolicLink() && (stats.mode & others) !== 0;
}

interface Entry {
  readonly path: string;
  readonly stats: Stats;
}

/** Lists all files and folders inside a folder, at most `levels` deep. */
const listEntries = (folder: string, levels: number): Entry[] =>
  readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const stats = tryStat(path);
    if (stats === undefined || stats === 'unreadable') return [];
    return [{ path, stats }, ...(stats.isDirectory() && levels > 1 ? listEntries(path, levels - 1) : [])];
  });

const list = (paths: readonly string[]): string =>
  paths.slice(0, MAX_PATHS_SHOWN).join(', ') +
  (paths.length > MAX_PATHS_SHOWN ? ` and ${paths.length - MAX_PATHS_SHOWN} more` : '');

const shellQuoted = (path: string): string => (/^[\w/.-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`);
