import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Clock } from '../../core/time/clock.ts';
import type { HostMachine } from '../config/config.ts';
import { OllamaClient } from './ollama-client.ts';
import { startOllamaProcess } from './ollama-process.ts';
import type { OllamaRun } from './ollama-run.ts';
import { ownerOf, type PortOwner } from './port-owner.ts';
import { SidecarFailure } from './sidecar-failure.ts';
import type { SidecarTimeouts } from './timeouts.ts';

const BETWEEN_LOOKS_MS = 40;

interface Start {
  /** The approved program. */
  readonly path: string;
  readonly port: number;
  readonly folder: string;
  readonly clock: Clock;
  readonly machine: HostMachine;
  readonly times: SidecarTimeouts;
  /** Called when it exits without being asked to. */
  readonly onEnd: (why: SidecarFailure) => void;
}

/** Starts Ollama. Resolves once it is known to be the process that listens on the port. */
export async function startOwnOllama(life: OllamaRun, start: Start): Promise<OllamaClient> {
  const { path, port, folder, clock, machine, times, onEnd } = start;
  const child = startOllamaProcess({
    path,
    port,
    home: join(folder, 'embeddings'),
    environment: machine.environment,
    onOutput: (chunk) => life.readLog(chunk),
    graceMs: times.stopGrace,
  });
  life.attach(child);
  const { pid } = child;
  void child.ended.then(async () => {
    // If another program took the port, report that instead of the exit.
    const taken = !life.logFlooded && !life.client && (await ownerOf(port, pid)) === 'another';
    onEnd(new SidecarFailure(taken ? 'port_taken' : 'crashed'));
  });
  await listening(life, { port, pid, readyMs: times.ready });
  return new OllamaClient({ host: '127.0.0.1', port, clock, prove: () => proved(port, pid) });
}

async function listening(life: OllamaRun, { port, pid, readyMs }: { port: number; pid: number; readyMs: number }): Promise<void> {
  const until = performance.now() + readyMs;
  for (;;) {
    const owner = await surelyOwnerOf(port, pid);
    life.signal.throwIfAborted();
    if (owner === 'it') return;
    if (owner === 'another') throw new SidecarFailure('port_taken');
    if (performance.now() > until) throw new SidecarFailure('hanging');
    await wait(BETWEEN_LOOKS_MS);
  }
}

async function proved(port: number, pid: number): Promise<void> {
  const owner = await surelyOwnerOf(port, pid);
  if (owner === 'another') throw new SidecarFailure('port_taken');
  if (owner === 'nobody') throw new SidecarFailure('crashed');
}

/** Looks twice: the socket of a process that is exiting can briefly appear to belong to another. */
async function surelyOwnerOf(port: number, pid: number): Promise<PortOwner> {
  const owner = await ownerOf(port, pid);
  if (owner !== 'another') return owner;
  await wait(BETWEEN_LOOKS_MS);
  return ownerOf(port, pid);
}
