import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import type { Caller } from '../../src/core/access/caller.ts';
import type { CallContext } from '../../src/core/operations/call-context.ts';
import { serve } from '../support/listener.ts';
import { aCaller } from '../support/memory.ts';

/** Asks for a brief on a connection of its own, and closes the connection when the program has begun to answer. */
const HOOK = `
  const { connect } = require('node:net');
  const { workerData: { port, request, shared } } = require('node:worker_threads');
  const state = new Int32Array(shared);
  const socket = connect(port, '127.0.0.1', () => socket.write(request));
  const closing = setInterval(() => {
    if (Atomics.load(state, 0) !== 1) return;
    clearInterval(closing);
    socket.once('close', () => { Atomics.store(state, 1, 1); Atomics.notify(state, 1); });
    socket.destroy();
  }, 5);`;

test('a hook that gave up while the program was busy was told nothing (R-BRIEF-07)', async () => {
  const state = new Int32Array(new SharedArrayBuffer(8));
  const served = await serve({
    wrapPerform: (perform) => (caller: Caller, name: string, input: unknown, during?: CallContext) => {
      const answer = perform(caller, name, input, during) as Promise<never>;
      // Block this thread, as other work would, until the hook has closed its connection.
      if (name === 'brief' && Atomics.compareExchange(state, 0, 0, 1) === 0) Atomics.wait(state, 1, 0, 10_000);
      return answer;
    },
  });
  await served.perform(aCaller({ client: 'codex' }), 'remember', { key: 'preferences/editor', value: 'Helix' });
  const body = JSON.stringify({ session: 's' });
  const head = [
    'POST /api/v1/brief HTTP/1.1',
    `Host: 127.0.0.1:${served.port}`,
    `Authorization: Bearer ${await served.token('me', ['memory:brief'], 'claude-code')}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ];
  const request = `${head.join('\r\n')}\r\n\r\n${body}`;
  const hook = new Worker(HOOK, { eval: true, workerData: { port: served.port, request, shared: state.buffer } });
  await once(hook, 'exit');
  expect([...state]).toEqual([1, 1]);
  await new Promise((resolve) => setTimeout(resolve, 200));
  const again = await served.perform(aCaller({ may: ['memory:brief'], transport: 'rest' }), 'brief', { session: 's' });
  expect(again.keys).toEqual(['preferences/editor']);
});
