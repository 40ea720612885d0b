import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import type { HostMachine } from '../../config/config.ts';
import type { DetectedClient, ProgramResult, LocalMachine } from '../connector.ts';
import { detectProgram } from '../detect.ts';

export interface OpenClaw extends DetectedClient {
  /** OpenClaw's state folder. It also contains the plugins. */
  readonly state: string;
}

/** Finds OpenClaw's files by the same rules as OpenClaw itself. */
export function findOpenClaw(machine: LocalMachine): OpenClaw {
  const home = placeIn(machine, 'OPENCLAW_HOME', machine.home()) ?? machine.home();
  const state = placeIn(machine, 'OPENCLAW_STATE_DIR', home) ?? join(home, '.openclaw');
  const config = placeIn(machine, 'OPENCLAW_CONFIG_PATH', home) ?? join(state, 'openclaw.json');
  return { ...detectProgram(machine, { program: 'openclaw', places: [join(state, 'bin')], config }), state };
}

function placeIn({ environment }: HostMachine, name: string, home: string): string | undefined {
  const value = environment[name]?.trim() ?? '';
  const path = value === '~' || /^~[/\\]/.test(value) ? join(home, value.slice(1)) : value;
  // Ignore a relative path, because OpenClaw would resolve it differently.
  return isAbsolute(path) ? path : undefined;
}

interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** Returns a command that runs OpenClaw's own program. Throws if the program was not found. */
export function openClawCommand(machine: LocalMachine, args: readonly string[]): Command {
  const { program } = findOpenClaw(machine);
  if (program === undefined) {
    throw new Failure(
      'not_found',
      "OpenClaw's program was not found in the PATH, or other users can change the program. Install OpenClaw, or start Helmdeck Memory from a shell in which the command `openclaw` works.",
    );
  }
  // OpenClaw needs the Node in the folder of OpenClaw's program. That folder is not in the PATH of programs that were started
  // from the desktop.
  const path = [machine.environment['PATH'], dirname(program)].filter(Boolean).join(delimiter);
  return { program, args, environment: { PATH: path, NO_COLOR: '1' } };
}

export function runOpenClaw(machine: LocalMachine, args: readonly string[]): Promise<ProgramResult> {
  const { program, args: allArgs, environment } = openClawCommand(machine, args);
  return machine.run(program, allArgs, environment);
}
