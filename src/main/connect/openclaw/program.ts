import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import type { HostMachine } from '../../config/config.ts';
import type { Detected, ProgramResult, LocalMachine } from '../connector.ts';
import { detectProgram } from '../detect.ts';

/** The OpenClaw on this machine. */
export interface OpenClaw extends Detected {
  /** Its state folder, which also contains the plugins. */
  readonly state: string;
}

/** Finds OpenClaw's files by its own rules. */
export function findOpenClaw(machine: LocalMachine): OpenClaw {
  const home = placeIn(machine, 'OPENCLAW_HOME', machine.home()) ?? machine.home();
  const state = placeIn(machine, 'OPENCLAW_STATE_DIR', home) ?? join(home, '.openclaw');
  const config = placeIn(machine, 'OPENCLAW_CONFIG_PATH', home) ?? join(state, 'openclaw.json');
  return { ...detectProgram(machine, { program: 'openclaw', places: [join(state, 'bin')], config }), state };
}

function placeIn({ environment }: HostMachine, name: string, home: string): string | undefined {
  const value = environment[name]?.trim() ?? '';
  const path = value === '~' || /^~[/\\]/.test(value) ? join(home, value.slice(1)) : value;
  // OpenClaw would resolve a relative path differently.
  return isAbsolute(path) ? path : undefined;
}

interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** A command of OpenClaw's own program. */
export function openClawCommand(machine: LocalMachine, args: readonly string[]): Command {
  const { program } = findOpenClaw(machine);
  if (program === undefined) {
    throw new Failure(
      'not_found',
      "OpenClaw's program was not found in the PATH, or other users can change it. Install OpenClaw, or start Helmdeck Memory from a shell that finds it.",
    );
  }
  // OpenClaw needs the Node in its own folder, which is missing from a desktop's PATH.
  const path = [machine.environment['PATH'], dirname(program)].filter(Boolean).join(delimiter);
  return { program, args, environment: { PATH: path, NO_COLOR: '1' } };
}

export function runOpenClaw(machine: LocalMachine, args: readonly string[]): Promise<ProgramResult> {
  const { program, args: allArgs, environment } = openClawCommand(machine, args);
  return machine.run(program, allArgs, environment);
}
