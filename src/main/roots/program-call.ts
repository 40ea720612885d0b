import { realpathSync } from 'node:fs';
import { delimiter, dirname, join, sep } from 'node:path';
import { setCliCommand } from '../../contract/cli-command.ts';
import { ROOT } from './installation.ts';

interface Installation {
  /** Folder that contains package.json. */
  readonly root: string;

  readonly path: string | undefined;
  readonly platform: NodeJS.Platform;
  /** Working directory of the user's terminal, if there is one. */
  readonly cwd?: string | undefined;
}

const NAME = 'helmdeck-memory';

/**
 * Returns the command that the user must type to run the command line. In a checkout this is `npx helmdeck-memory`. Elsewhere npx
 * would download a package of that name, so the command is `node` with the path of the file. If the PATH contains this
 * installation, or if the desktop was installed without a command line, the command is `helmdeck-memory`.
 *
 * @internal
 */
export function programCall({ root, path = '', platform, cwd = root }: Installation): string {
  const file = join(root, 'bin', `${NAME}.js`);
  const real = tryRealpath(file);
  if (real === undefined || isInPath(real, path, platform)) return NAME;
  if (tryRealpath(cwd) === tryRealpath(root) || root.includes(`${sep}_npx${sep}`)) return `npx ${NAME}`;
  return `node ${/^[\w/.:\\-]+$/.test(file) ? file : JSON.stringify(file)}`;
}

/** Sets the command that messages suggest, in the form that works on this machine. */
export function configureProgramCall(cwd?: string): void {
  const { env, platform, argv } = process;
  const installation = { root: rootOf(argv[1] ?? '') ?? ROOT, path: env['PATH'], platform };
  setCliCommand(programCall({ ...installation, cwd }), programCall({ ...installation, cwd: sep }));
}

/** Returns the root folder of the installation whose script was started, or undefined for another script. */
function rootOf(started: string): string | undefined {
  const launcher = tryRealpath(started);
  if (launcher?.endsWith(`${sep}bin${sep}${NAME}.js`)) return dirname(dirname(launcher));
  // If the current Node is too old, the launcher starts the main script directly, with another Node.
  return /^(.*)[/\\](?:src[/\\]main[/\\]roots|out[/\\]main)[/\\]cli\.c?[jt]s$/.exec(started)?.[1];
}

/** Whether the PATH contains this installation. Ignores folders that npm adds, because the user's terminal lacks them. */
const isInPath = (file: string, path: string, platform: NodeJS.Platform): boolean =>
  path
    .split(delimiter)
    .filter((folder) => folder !== '' && !folder.includes('node_modules') && !folder.includes(`${sep}_npx${sep}`))
    .some((folder) =>
      platform === 'win32' ? tryRealpath(join(folder, `${NAME}.cmd`)) !== undefined : tryRealpath(join(folder, NAME)) === file,
    );

function tryRealpath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
