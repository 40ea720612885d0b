import { readFileSync, readlinkSync, type Stats, lstatSync, statSync } from 'node:fs';
import { posix } from 'node:path';

const WRITABLE_BY_OTHERS = 0o002;
const WRITABLE_BY_GROUP = 0o020;
const STICKY = 0o1000;
/** The limit of Linux. */
const MAX_LINKS = 40;

/**
 * Finds a file or folder through which another user could replace a program that we run: the program itself, a link to it, or a
 * folder above it. Returns the first one, or undefined if the program is safe to run. Follows the path link by link, because a user
 * who can replace a link decides where it leads. Does not check Windows, because Node cannot read its access lists.
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
    // `place` is not a link here, so `..` leads to the folder that contains it.
    place = posix.join(place, next);
    rest = after;
  }
}

/** Whether only trusted users can place programs in a folder. In a sticky folder, any user can create a file. */
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
  // The mode of a link has no effect; its owner decides where it leads.
  return ownerTrusted && (stats.isSymbolicLink() || !isWritableByOthers(stats) || isStickyFolder(stats));
}

const isWritableByOthers = ({ mode, gid }: Stats): boolean =>
  (mode & WRITABLE_BY_OTHERS) !== 0 || ((mode & WRITABLE_BY_GROUP) !== 0 && !isTrustedGroup(gid));

/** In a sticky folder, users can rename and delete only their own files. */
const isStickyFolder = (stats: Stats): boolean => stats.isDirectory() && (stats.mode & STICKY) !== 0;

/** Group 80 holds the administrators of macOS, who own its applications and Homebrew. */
const isTrustedGroup = (gid: number): boolean =>
  gid === 0 || (process.platform === 'darwin' ? gid === 80 : hasNoOtherMember(gid));

/** Many distributions give each user a group of their own and create files that this group may write. */
function hasNoOtherMember(gid: number): boolean {
  try {
    const { groups, users } = { groups: rowsOf('/etc/group'), users: rowsOf('/etc/passwd') };
    const group = groups.find(([, , id]) => Number(id) === gid);
    // A group from a directory service may have any members.
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
