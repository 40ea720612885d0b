import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import type { HostMachine } from '../../config/config.ts';
import type { Detected, Ran, Surroundings } from '../connector.ts';
import { detectProgram } from '../detect.ts';

/** OpenClaw as it is on this machine. */
export interface OpenClaw extends Detected {
  /** Where it keeps all that is its own, plugins too. */
  readonly state: string;
}

/** By OpenClaw's own rules for where things are. */
export function findOpenClaw(around: Surroundings): OpenClaw {
  const home = placeIn(around, 'OPENCLAW_HOME', around.home()) ?? around.home();
  const state = placeIn(around, 'OPENCLAW_STATE_DIR', home) ?? join(home, '.openclaw');
  const config = placeIn(around, 'OPENCLAW_CONFIG_PATH', home) ?? join(state, 'openclaw.json');
  return { ...detectProgram(around, { program: 'openclaw', places: [join(state, 'bin')], config }), state };
}

function placeIn({ environment }: HostMachine, name: string, home: string): string | undefined {
  const said = environment[name]?.trim() ?? '';
  const path = said === '~' || /^~[/\\]/.test(said) ? join(home, said.slice(1)) : said;
  // A relative one would be another folder for us than it is for OpenClaw.
  return isAbsolute(path) ? path : undefined;
}

interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** What has OpenClaw's own program do something. */
export function openClawCommand(around: Surroundings, args: readonly string[]): Command {
  const { program } = findOpenClaw(around);
  if (program === undefined) {
    throw new Failure(
      'not_found',
      "OpenClaw's own program was not found in the PATH, or others may write it; install it, or start this program from a shell that finds it.",
    );
  }
  // It is started by the Node beside it, which a desktop's PATH does not have.
  const path = [around.environment['PATH'], dirname(program)].filter(Boolean).join(delimiter);
  return { program, args, environment: { PATH: path, NO_COLOR: '1' } };
}

export function askOpenClaw(around: Surroundings, args: readonly string[]): Promise<Ran> {
  const { program, args: all, environment } = openClawCommand(around, args);
  return around.run(program, all, environment);
}
