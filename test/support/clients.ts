import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ClientRow } from '../../src/contract/client.ts';
import { CONNECTORS } from '../../src/main/connect/clients.ts';
import { Connections } from '../../src/main/connect/connections.ts';
import type { Connector } from '../../src/main/connect/connector.ts';
import { localMachine } from '../../src/main/connect/programs.ts';
import { type ServeOptions, serve } from './listener.ts';
import { tempFolder } from './temp-folder.ts';

interface Options {
  readonly connectors?: readonly Connector[];
  /** The folder name of the home. */
  readonly folderName?: string;
}

/** Creates an empty home folder and installs fake clients in it. */
export function createClientHome({ connectors = CONNECTORS, folderName: called = '.' }: Options = {}) {
  const home = join(tempFolder(), called);
  mkdirSync(home, { recursive: true });
  const bin = join(home, 'bin');
  const machine = {
    environment: { PATH: bin, HOME: home, HELMDECK_MEMORY_KEY: 'a key of ours' },
    platform: process.platform,
    home: () => home,
  };
  const host = localMachine(machine, () => []);
  const put = (name: string, text: string, mode = 0o644): string => {
    const path = join(home, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    chmodSync(path, mode);
    return path;
  };
  const clients: NonNullable<ServeOptions['clients']> = ({ store, ...rest }) =>
    new Connections({ ...rest, connectors, machine: host, now: () => store.now() });
  return {
    home,
    host,
    clients,
    /** Writes a file below the home folder. */
    put,
    /** Installs a shell script as a program with the given name. */
    program: (name: string, script: string, mode = 0o755) =>
      put(join('bin', name), `#!/bin/sh\nPATH=/usr/bin:/bin\n${script}\n`, mode),
  };
}

/** The same, with a running memory. */
export async function createServedHome(options: Options = {}) {
  const { clients, ...home } = createClientHome(options);
  const opened: Connections[] = [];
  const served = await serve({
    clients: (surrounded) => {
      const [first = clients(surrounded)] = opened;
      return first;
    },
  });
  const connections = clients(served) as Connections;
  opened.push(connections);
  return {
    ...home,
    served,
    connections,
    row: async (client: string): Promise<ClientRow> => {
      const row = (await connections.list()).clients.find(({ id }) => id === client);
      if (!row) throw new Error(`${client} is not in the list of clients.`);
      return row;
    },
  };
}
