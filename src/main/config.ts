import { posix, win32 } from 'node:path';
import { Failure } from '../contract/failure.ts';

/** What the environment asks for, checked. */
export interface Config {
  /** Where the memory lies, and all that belongs to it. */
  readonly folder: string;
}

export interface Machine {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  /** Throws where the user has no home, as in some containers. */
  home(): string;
}

/** A setting that is set and cannot be honoured stops the start with its name: what it asked for is never guessed at. */
export function readConfig(machine: Machine): Config {
  const { environment, platform } = machine;
  const path = platform === 'win32' ? win32 : posix;
  const asked = environment['HELMDECK_DATA_DIR'];
  // A relative path would name another folder, and so another memory, wherever the program is started from.
  if (asked !== undefined && !path.isAbsolute(asked)) {
    throw new Failure(
      'store_unavailable',
      'HELMDECK_DATA_DIR must be an absolute path; write it in full, or leave it out for the usual place.',
    );
  }
  const folder = asked ?? usualFolder(machine);
  if (path.isAbsolute(folder)) return { folder };
  throw new Failure(
    'store_unavailable',
    'This user has no home folder to keep a memory in; name a folder with HELMDECK_DATA_DIR.',
  );
}

/** Where the system wants programs to keep their data. */
function usualFolder(machine: Machine): string {
  const { environment, platform } = machine;
  if (platform === 'win32') {
    return win32.join(environment['APPDATA'] ?? win32.join(homeOf(machine), 'AppData', 'Roaming'), 'Helmdeck Memory');
  }
  if (platform === 'darwin') return posix.join(homeOf(machine), 'Library', 'Application Support', 'Helmdeck Memory');
  // The XDG specification has relative paths ignored, and so empty ones.
  const data = environment['XDG_DATA_HOME'] ?? '';
  return posix.join(posix.isAbsolute(data) ? data : posix.join(homeOf(machine), '.local', 'share'), 'helmdeck-memory');
}

function homeOf(machine: Machine): string {
  try {
    return machine.home();
  } catch {
    return '';
  }
}
