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

const POLL_MS = 40;

interface Start {
  /** Absolute path of the approved Ollama program. */
  readonly path: string;
  readonly port: number;
  readonly folder: string;
  readonly clock: Clock;
  readonly machine: HostMachine;
  readonly times: SidecarTimeouts;
  /** Called when the Ollama process exits unexpectedly. */
  readonly onEnd: (why: SidecarFailure) => void;
}

/** Starts Ollama. Resolves when the started process is known to listen on the port. */
export async function startOwnOllama(run: OllamaRun, start: Start): Promise<OllamaClient> {
  const { path, port, folder, clock, machine, times, onEnd } = start;
  const child = startOllamaProcess({
    path,
    port,
    home: join(folder, 'embeddings'),
    environment: machine.environment,
    onOutput: (chunk) => run.readLog(chunk),
    graceMs: times.stopGrace,
  });
  run.attach(child);
  const { pid } = child;
  void child.ended.then(async () => {
    // If another program took the port, report that instead of Ollama's exit.
    const taken = !run.logFlooded && !run.client && (await ownerOf(port, pid)) === 'another';
    onEnd(new SidecarFailure(taken ? 'port_taken' : 'crashed'));
  });
  await waitUntilListening(run, { port, pid, readyMs: times.ready });
  return new OllamaClient({ host: '127.0.0.1', port, clock, prove: () => requireOwner(port, pid) });
}

async function waitUntilListening(
  run: OllamaRun,
  { port, pid, readyMs }: { port: number; pid: number; readyMs: number },
): Promise<void> {
  const until = performance.now() + readyMs;
  for (;;) {
    const owner = await confirmedOwnerOf(port, pid);
    run.signal.throwIfAborted();
    if (owner === 'expected') return;
    if (owner === 'another') throw new SidecarFailure('port_taken');
    if (performance.now() > until) throw new SidecarFailure('hanging');
    await wait(POLL_MS);
  }
}

async function requireOwner(port: number, pid: number): Promise<void> {
  const owner = await confirmedOwnerOf(port, pid);
  if (owner === 'another') throw new SidecarFailure('port_taken');
  if (owner === 'none') throw new SidecarFailure('crashed');
}

/**
 * Checks a second time before it reports another owner: the socket of a process that is exiting can briefly seem to belong to
 * another process.
 */
async function confirmedOwnerOf(port: number, pid: number): Promise<PortOwner> {
  const owner = await ownerOf(port, pid);
  if (owner !== 'another') return owner;
  await wait(POLL_MS);
  return ownerOf(port, pid);
}
