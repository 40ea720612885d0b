import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Clock } from '../../core/clock.ts';
import type { Machine } from '../config.ts';
import { startChild } from './child.ts';
import type { Life } from './life.ts';
import { ownerOf, type PortOwner } from './port-owner.ts';
import type { Times } from './times.ts';
import { Trouble } from './trouble.ts';
import { OllamaWire } from './wire.ts';

const BETWEEN_LOOKS_MS = 40;

interface Start {
  /** That which was approved. */
  readonly path: string;
  readonly port: number;
  readonly folder: string;
  readonly clock: Clock;
  readonly machine: Machine;
  readonly times: Times;
  /** It ended by itself. */
  readonly onEnd: (why: Trouble) => void;
}

/** Starts an Ollama of our own. Fulfils when it is known to be the one that listens there. */
export async function startOwn(life: Life, start: Start): Promise<OllamaWire> {
  const { path, port, folder, clock, machine, times, onEnd } = start;
  const child = startChild({
    path,
    port,
    home: join(folder, 'embeddings'),
    environment: machine.environment,
    hear: (chunk) => life.hear(chunk),
    graceMs: times.grace,
  });
  life.own(child);
  const { pid } = child;
  void child.ended.then(async () => {
    // What it could not have is told, rather than that it ended.
    const taken = !life.flooded && !life.wire && (await ownerOf(port, pid)) === 'another';
    onEnd(new Trouble(taken ? 'port_taken' : 'crashed'));
  });
  await listening(life, { port, pid, readyMs: times.ready });
  return new OllamaWire({ host: '127.0.0.1', port, clock, prove: () => proved(port, pid) });
}

async function listening(life: Life, { port, pid, readyMs }: { port: number; pid: number; readyMs: number }): Promise<void> {
  const until = performance.now() + readyMs;
  for (;;) {
    const owner = await surelyOwnerOf(port, pid);
    life.signal.throwIfAborted();
    if (owner === 'it') return;
    if (owner === 'another') throw new Trouble('port_taken');
    if (performance.now() > until) throw new Trouble('hanging');
    await wait(BETWEEN_LOOKS_MS);
  }
}

async function proved(port: number, pid: number): Promise<void> {
  const owner = await surelyOwnerOf(port, pid);
  if (owner === 'another') throw new Trouble('port_taken');
  if (owner === 'nobody') throw new Trouble('crashed');
}

/** One that is just ending may seem to be another for a moment: its socket is still listed, and it holds it no more. */
async function surelyOwnerOf(port: number, pid: number): Promise<PortOwner> {
  const owner = await ownerOf(port, pid);
  if (owner !== 'another') return owner;
  await wait(BETWEEN_LOOKS_MS);
  return ownerOf(port, pid);
}
