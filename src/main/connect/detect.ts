import { existsSync } from 'node:fs';
import type { Detected, LocalMachine } from './connector.ts';
import { findProgram, versionOf } from './programs.ts';

interface Marks {
  /** Of its program. */
  readonly program: string;
  /** Where its own installer puts it. */
  readonly places?: readonly string[];
  readonly config: string;
}

/** A client that is a program of the command line, or was used before. */
export function detectProgram(machine: LocalMachine, { program: name, places, config }: Marks): Detected {
  const program = findProgram(machine, name, places);
  const version = versionOf(program);
  return {
    installed: program !== undefined || existsSync(config),
    ...(version !== undefined && { version }),
    ...(program !== undefined && { program }),
    config,
  };
}
