import { existsSync } from 'node:fs';
import type { DetectedClient, LocalMachine } from './connector.ts';
import { findProgram, versionOf } from './programs.ts';

interface Traces {
  /** Name of the command line program, without a folder or an extension. */
  readonly program: string;
  /** More folders in which the client's installer puts the program. */
  readonly places?: readonly string[];
  readonly config: string;
}

/** Detects a client by its command line program or its configuration file. */
export function detectProgram(machine: LocalMachine, { program: name, places, config }: Traces): DetectedClient {
  const program = findProgram(machine, name, places);
  const version = versionOf(program);
  return {
    installed: program !== undefined || existsSync(config),
    ...(version !== undefined && { version }),
    ...(program !== undefined && { program }),
    config,
  };
}
