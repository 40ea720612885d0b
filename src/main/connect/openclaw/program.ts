import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import type { HostMachine } from '../../config/config.ts';
import type { Detected, ProgramResult, LocalMachine } from '../connector.ts';
import { detectProgram } from '../detect.ts';

/** OpenClaw as it is on this machine. */
export interface OpenClaw extends Detected {
  /** Where it keeps all that is its own, plugins too. */
  readonly state: string;
}

/** By OpenClaw's own rules for where things are. */
export function findOpenClaw(machine: LocalMachine): OpenClaw {
  const home = placeIn(machine, 'OPENCLAW_HOME', machine.home()) ?? machine.home();
  const state = placeIn(machine, 'OPENCLAW_STATE_DIR', home) ?? join(home, '.openclaw');
  const config = placeIn(machine, 'OPENCLAW_CONFIG_PATH', home) ?? join(state, 'openclaw.json');
  return { ...detectProgram(machine, { program: 'openclaw', places: [join(state, 'bin')], config }), state };
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
export function openClawCommand(machine: LocalMachine, args: readonly string[]): Command {
  const { program } = findOpenClaw(machine);
  if (program === undefined) {
    throw new Failure(
      'not_found',
      "OpenClaw's own program was not found in the PATH, or others may write it; install it, or start this program from a shell that finds it.",
    );
  }
  // It is started by the Node beside it, which a desktop's PATH does not have.
  const path = [machine.environment['PATH'], dirname(program)].filter(Boolean).join(delimiter);
  return { program, args, environment: { PATH: path, NO_COLOR: '1' } };
}

export function askOpenClaw(machine: LocalMachine, args: readonly string[]): Promise<ProgramResult> {
  const { program, args: all, environment } = openClawCommand(machine, args);
  return machine.run(program, all, environment);
}
