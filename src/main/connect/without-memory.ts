import { Failure } from '../../contract/failure.ts';
import type { HostMachine } from '../config/config.ts';
import { CONNECTORS } from './clients.ts';
import { Connections } from './connections.ts';
import { localMachine } from './programs.ts';

/**
 * Manages the clients of a machine without opening a memory, for clients that use a server on another machine. It cannot create,
 * list or revoke tokens.
 */
export function connectionsWithoutMemory(machine: HostMachine, folder: string, now: () => number): Connections {
  const { environment, platform } = machine;
  const home = (): string => environment[platform === 'win32' ? 'USERPROFILE' : 'HOME'] ?? machine.home();
  const unavailable = (): Promise<never> =>
    Promise.reject(new Failure('unavailable', 'No memory was opened on this machine, so there is no list of tokens.'));
  return new Connections({
    connectors: CONNECTORS,
    machine: localMachine({ environment, platform, home }),
    tokens: { mint: unavailable, list: unavailable, revoke: unavailable },
    folder,
    now,
  });
}
