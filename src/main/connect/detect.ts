import { existsSync } from 'node:fs';
import type { Detected, LocalMachine } from './connector.ts';
import { findProgram, versionOf } from './programs.ts';

interface Traces {
  /** The program's name. */
  readonly program: string;
  /** Folders that its installer uses. */
  readonly places?: readonly string[];
  readonly config: string;
}

/** Detects a client by its command line program or its configuration file. */
export function detectProgram(machine: LocalMachine, { program: name, places, config }: Traces): Detected {
  const program = findProgram(machine, name, places);
  const version = versionOf(program);
  return {
    installed: program !== undefined || existsSync(config),
    ...(version !== undefined && { version }),
    ...(program !== undefined && { program }),
    config,
  };
}
