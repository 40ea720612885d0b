import { realpathSync } from 'node:fs';
import { delimiter, dirname, join, sep } from 'node:path';
import { setCliCommand } from '../contract/cli-command.ts';

interface Circumstances {
  /** The folder with package.json. */
  readonly root: string;
  readonly path: string | undefined;
  readonly platform: NodeJS.Platform;
  /** Where the owner's terminal is; absent for a program that speaks to more than one place. */
  readonly cwd?: string | undefined;
}

const NAME = 'helmdeck-memory';

/**
 * What starts the command line here: its name where the PATH leads to this installation, as after npm link; npx in a checkout;
 * elsewhere its file, because npx would then fetch a package of that name. The packed desktop brings no command line along, so one in
 * the PATH is assumed.
 *
 * @internal
 */
export function programCall({ root, path = '', platform, cwd = root }: Circumstances): string {
  const file = join(root, 'bin', `${NAME}.js`);
  const real = realOf(file);
  if (real === undefined || leadsTo(real, path, platform)) return NAME;
  if (realOf(cwd) === realOf(root) || root.includes(`${sep}_npx${sep}`)) return `npx ${NAME}`;
  return `node ${/^[\w/.:\\-]+$/.test(file) ? file : JSON.stringify(file)}`;
}

/** Has every text that suggests a command name what works here. `cwd` is the folder of the owner's terminal, if there is one. */
export function configureProgramCall(root: string, cwd?: string): void {
  const { env, platform, argv } = process;
  const here = { root: rootOf(argv[1] ?? '') ?? root, path: env['PATH'], platform };
  setCliCommand(programCall({ ...here, cwd }), programCall({ ...here, cwd: sep }));
}

/** The installation that the owner started, which may lead here by links. */
function rootOf(started: string): string | undefined {
  const launcher = realOf(started);
  if (launcher?.endsWith(`${sep}bin${sep}${NAME}.js`)) return dirname(dirname(launcher));
  // The launcher starts another Node with the program itself, under the root of its own.
  return /[/\\]main[/\\]cli\.c?[jt]s$/.test(started) ? dirname(dirname(dirname(started))) : undefined;
}

/** npm puts folders of its own in front of the PATH, which are not there in the next terminal. */
const leadsTo = (file: string, path: string, platform: NodeJS.Platform): boolean =>
  path
    .split(delimiter)
    .filter((folder) => folder !== '' && !folder.includes('node_modules') && !folder.includes(`${sep}_npx${sep}`))
    .some((folder) =>
      platform === 'win32' ? realOf(join(folder, `${NAME}.cmd`)) !== undefined : realOf(join(folder, NAME)) === file,
    );

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
