import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/core/time/clock.ts';
import { OllamaClient } from '../../../src/main/sidecar/ollama-client.ts';
import { SidecarFailure } from '../../../src/main/sidecar/sidecar-failure.ts';

/** A server on a local port with the given handler. */
async function answering(listener: RequestListener): Promise<OllamaClient> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return new OllamaClient({ host: '127.0.0.1', port, clock: systemClock, prove: () => Promise.resolve() });
}

describe('a malicious Ollama (R-EMB-08)', () => {
  test('cannot extend a timeout by sending single bytes', async () => {
    const wire = await answering((_request, response) => {
      response.write('{"embeddings": [[1]]');
      let drops = 0;
      const drip = setInterval(() => ((drops += 1) < 100 ? response.write(' ') : response.end('}')), 20);
      response.once('close', () => clearInterval(drip));
    });
    await expect(wire.embed('m', ['a text'], 300)).rejects.toMatchObject({ code: 'hanging' });
  });

  test('cannot send an unlimited response', async () => {
    const wire = await answering((_request, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write(' '.repeat(65_536)));
        response.once('drain', more);
      };
      more();
    });
    await expect(wire.embed('m', ['a text'], 20_000)).rejects.toMatchObject({ code: 'broken' });
  });

  test.for(['resetAndDestroy', 'end'] as const)(
    'cannot block a request by closing the connection during the check (%s)',
    async (ends) => {
      const { promise: come, resolve } = Promise.withResolvers<Socket>();
      const server = createTcp((socket) => resolve(socket.on('error', () => undefined)));
      await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
      onTestFinished(() => void server.close());
      const { port } = server.address() as AddressInfo;
      const prove = async (): Promise<void> => {
        (await come)[ends]();
        await wait(100);
        if (ends === 'end') throw new SidecarFailure('foreign');
      };
      const wire = new OllamaClient({ host: '127.0.0.1', port, clock: systemClock, prove });
      await expect(wire.version(20_000)).rejects.toThrow('closed during the check');
    },
  );

  test('cannot redirect requests', async () => {
    const asked: string[] = [];
    const wire = await answering((request, response) => {
      asked.push(request.url ?? '');
      response.writeHead(307, { Location: '/elsewhere' }).end();
    });
    await expect(wire.embed('m', ['a text'], 20_000)).rejects.toMatchObject({ code: 'broken' });
    expect(asked).toEqual(['/api/embed']);
  });

  test.for(['0.99.0\u001b]0;x\u0007', `0.99.0${'9'.repeat(100)}`, '0.99.0 and more'])(
    'cannot send an invalid version: %j',
    async (version) => {
      const wire = await answering((_request, response) => response.end(JSON.stringify({ version })));
      await expect(wire.version(20_000)).rejects.toMatchObject({ code: 'broken' });
    },
  );
});
