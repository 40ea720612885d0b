import { readFileSync, readlinkSync, type Stats, lstatSync, statSync } from 'node:fs';
import { posix } from 'node:path';

const WRITABLE_BY_OTHERS = 0o002;
const WRITABLE_BY_GROUP = 0o020;
const STICKY = 0o1000;
/** Maximum number of symbolic links in a path, the same as in Linux. */
const MAX_LINKS = 40;

/**
 * Finds a file or folder through which another user could replace a program that we run: the program itself, a link to it, or a
 * folder above it. Returns the first such path, or undefined if the program is safe to run. Also checks each link in the path,
 * because a user who can replace a link can change its target. Returns undefined on Windows, because Node cannot read access
 * lists on Windows.
 */
export function findUntrustedPath(path: string): string | undefined {
  if (process.platform === 'win32') return undefined;
  let rest = segmentsOf(posix.isAbsolute(path) ? path : `${process.cwd()}/${path}`);
  let place = '/';
  let links = 0;
  for (;;) {
    if (!isTrusted(place)) return place;
    if (lstatSync(place).isSymbolicLink()) {
      links += 1;
      if (links > MAX_LINKS) return place;
      const target = readlinkSync(place);
      rest = [...segmentsOf(target), ...rest];
      place = posix.isAbsolute(target) ? '/' : posix.dirname(place);
      continue;
    }
    const [next, ...after] = rest;
    if (next === undefined) return undefined;
    // Here `place` is not a symbolic link, so `..` in the path leads to the folder that contains `place`.
    place = posix.join(place, next);
    rest = after;
  }
}

/** Whether only trusted users can place programs in a folder. False for a sticky folder in which all users can create files. */
export function isTrustedFolder(folder: string): boolean {
  try {
    return findUntrustedPath(folder) === undefined && (process.platform === 'win32' || !isWritableByOthers(statSync(folder)));
  } catch {
    return false;
  }
}

const segmentsOf = (path: string): string[] => path.split('/').filter((segment) => segment !== '' && segment !== '.');

function isTrusted(path: string): boolean {
  const stats = lstatSync(path);
  const ownerTrusted = stats.uid === 0 || stats.uid === process.getuid?.();
  // For a symbolic link, check only the owner, who can change the target. The mode of a link has no effect.
  return ownerTrusted && (stats.isSymbolicLink() || !isWritableByOthers(stats) || isStickyFolder(stats));
}

const isWritableByOthers = ({ mode, gid }: Stats): boolean =>
  (mode & WRITABLE_BY_OTHERS) !== 0 || ((mode & WRITABLE_BY_GROUP) !== 0 && !isTrustedGroup(gid));

/** Whether this is a folder with the sticky bit, in which users can rename and delete only their own files. */
const isStickyFolder = (stats: Stats): boolean => stats.isDirectory() && (stats.mode & STICKY) !== 0;

/** Whether all members of the group are trusted to change programs. On macOS, group 80 contains the administrators. */
const isTrustedGroup = (gid: number): boolean =>
  gid === 0 || (process.platform === 'darwin' ? gid === 80 : hasNoOtherMember(gid));

/** Whether only root and the current user are in the group. Many Linux distributions give each user such a group. */
function hasNoOtherMember(gid: number): boolean {
  try {
    const { groups, users } = { groups: rowsOf('/etc/group'), users: rowsOf('/etc/passwd') };
    const group = groups.find(([, , id]) => Number(id) === gid);
    // A group that is not in /etc/group comes from a directory service, so its members are unknown.
    if (!group) return false;
    const mayWrite = new Set([0, process.getuid?.()]);
    const byName = new Map(users.map(([name = '', , uid]) => [name, Number(uid)]));
    const named = (group[3] ?? '').split(',').filter((name) => name !== '');
    const members = [
      ...named.map((name) => byName.get(name)),
      ...users.filter(([, , , primary]) => Number(primary) === gid).map(([, , uid]) => Number(uid)),
    ];
    return members.every((uid) => mayWrite.has(uid));
  } catch {
    return false;
  }
}

const rowsOf = (file: string): string[][] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
