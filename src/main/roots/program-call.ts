import { realpathSync } from 'node:fs';
import { delimiter, dirname, join, sep } from 'node:path';
import { setCliCommand } from '../../contract/cli-command.ts';
import { ROOT } from './installation.ts';

interface Installation {
  /** The folder with package.json. */
  readonly root: string;
  readonly path: string | undefined;
  readonly platform: NodeJS.Platform;
  /** Working directory of the user's terminal, if there is one. */
  readonly cwd?: string | undefined;
}

const NAME = 'helmdeck-memory';

/**
 * The command that starts this command line: its name if the PATH contains this installation, npx in a checkout, otherwise
 * the file itself, because npx would download a package of that name. The packed desktop has no command line, so its name
 * is assumed to be in the PATH.
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

/** Makes all messages suggest commands that work on this machine. */
export function configureProgramCall(cwd?: string): void {
  const { env, platform, argv } = process;
  const installation = { root: rootOf(argv[1] ?? '') ?? ROOT, path: env['PATH'], platform };
  setCliCommand(programCall({ ...installation, cwd }), programCall({ ...installation, cwd: sep }));
}

/** The root of the installation that was started, before links are resolved. */
function rootOf(started: string): string | undefined {
  const launcher = tryRealpath(started);
  if (launcher?.endsWith(`${sep}bin${sep}${NAME}.js`)) return dirname(dirname(launcher));
  // The launcher can start another Node with the main script directly.
  return /^(.*)[/\\](?:src[/\\]main[/\\]roots|out[/\\]main)[/\\]cli\.c?[jt]s$/.exec(started)?.[1];
}

/** Ignores folders that npm prepends to the PATH, because a new terminal does not have them. */
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
