import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTrap, type Server } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Egress } from '../../src/core/packs/egress.ts';
import { systemClock } from '../../src/core/time/clock.ts';
import { createEgress, type Network } from '../../src/main/egress/egress.ts';
import type { ManualClock } from './clock.ts';
import { tempFolder } from './temp-folder.ts';

type Answering = (request: IncomingMessage, response: ServerResponse) => void;

export interface FakeInternet {
  readonly egress: Egress;
  /** Network functions that lead to the fake internet. */
  readonly network: Required<Network>;
  /** DNS answers by name, one list per lookup; the last list repeats. */
  readonly names: Map<string, (readonly string[])[]>;
  /** Every request received. */
  readonly requests: { readonly method: string; readonly url: string; readonly headers: IncomingMessage['headers'] }[];
  /** Every address connected to. */
  readonly connections: string[];
  /** The number of connections to any address other than the public one. */
  readonly trappedConnections: () => number;
  /** Sets the handler for a host. */
  respond(host: string, answering: Answering): void;
}

/** The only address on this internet. */
export const PUBLIC_IPV4 = '93.184.215.14';
export const PUBLIC_IPV6 = '2606:2800:21f:cb07:6820:80da:af6b:8b2c';

/**
 * A fake internet of one TLS server. Names resolve to whatever a test wants; connections to any other address end in a trap and
 * are counted.
 */
export async function startFakeInternet({ clock }: { clock?: ManualClock } = {}): Promise<FakeInternet> {
  const { key, cert } = certificate();
  const hosts = new Map<string, Answering>();
  const asked: FakeInternet['requests'] = [];
  const server = createServer({ key, cert }, (request, response) => {
    const { host = '' } = request.headers;
    asked.push({ method: request.method ?? '', url: `https://${host}${request.url}`, headers: request.headers });
    const answering = hosts.get(host);
    if (answering) answering(request, response);
    else response.writeHead(404).end();
  });
  let trapped = 0;
  const trap = createTrap((socket) => {
    trapped += 1;
    socket.destroy();
  });
  const [port, trapPort] = [await listening(server), await listening(trap)];
  const names: FakeInternet['names'] = new Map();
  const dialled: string[] = [];
  const network: Required<Network> = {
    async resolve(name) {
      const answers = names.get(name) ?? [[PUBLIC_IPV4]];
      return (answers.length > 1 ? answers.shift() : answers[0]) ?? [];
    },
    dial(address, dialledPort) {
      dialled.push(`${address} ${dialledPort}`);
      return connect({ host: '127.0.0.1', port: address === PUBLIC_IPV4 || address === PUBLIC_IPV6 ? port : trapPort });
    },
    ca: cert,
  };
  return {
    egress: createEgress({ ...network, clock: clock ?? systemClock }),
    network,
    names,
    requests: asked,
    connections: dialled,
    trappedConnections: () => trapped,
    respond: (host, answering) => void hosts.set(host, answering),
  };
}

async function listening(server: Server): Promise<number> {
  const open = new Set<{ destroy(): unknown }>();
  server.on('connection', (socket) => open.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

let made: { readonly key: string; readonly cert: string } | undefined;

/** A certificate for the names that tests use. No system trusts it. */
function certificate(): { readonly key: string; readonly cert: string } {
  if (made) return made;
  const folder = tempFolder();
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const names = ['example.com', '*.example.com', '*.example.org', 'api.github.com'].map((name) => `DNS:${name}`).join(',');
  execFileSync(
    'openssl',
    // prettier-ignore
    ['req', '-x509', '-nodes', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-days', '2', '-subj', '/CN=outside', '-addext', `subjectAltName=${names}`, '-keyout', key, '-out', cert],
    { stdio: 'ignore' },
  );
  return (made = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') });
}
