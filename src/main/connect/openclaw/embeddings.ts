import { Failure } from '../../../contract/failure.ts';
import { findEndpoint } from '../../../listeners/endpoint.ts';
import { ProvedHttpAgent } from '../../../listeners/owner-client.ts';
import { SETTINGS } from '../../config/settings-table.ts';
import { readConfigFile } from '../config-file.ts';
import type { Connector, EditStep, Look, LocalMachine } from '../connector.ts';
import { json5 } from '../json-text.ts';
import { findOpenClaw } from './program.ts';

const { dropValue, setValue, valueAt } = json5;

/** What is ours of it, by the path below its search. */
const OURS = [['provider'], ['model'], ['remote', 'baseUrl'], ['remote', 'apiKey']] as const;
const PROVIDER = 'openai-compatible';

/**
 * OpenClaw's own search by meaning, through our embeddings. Its configuration is written by us and not by its program, because that
 * takes a value by the command line alone, where a token may not stand. The token is good for nothing but embedding.
 */
export const openClawEmbeddings: Connector = {
  id: 'openclaw-embeddings',
  name: "OpenClaw's search by meaning",
  transport: 'http',
  scopes: ['memory:read'],
  // Nobody keeps a memory under this name.
  subject: 'embeddings',
  afterwards: 'OpenClaw indexes its notes anew when it is searched next, or at once with: openclaw memory index --force',
  async detect(machine) {
    const { state: _, ...detected } = findOpenClaw(machine);
    return detected;
  },
  async look(machine): Promise<Look> {
    const { text } = readConfigFile(findOpenClaw(machine).config) ?? {};
    return text !== undefined && isOurs(text, searchOf(machine)) ? { at: 'present' } : { at: 'absent' };
  },
  outdated(machine, folder) {
    const way = findEndpoint(folder);
    return way && told(machine, 'baseUrl') !== endpointOf(way.url) ? MOVED : undefined;
  },
  async connect(machine, { folder, token }) {
    const { config } = findOpenClaw(machine);
    const search = searchOf(machine);
    const values = [PROVIDER, modelOf(machine), endpointOf(addressIn(folder)), token];
    const edit = (before = ''): string => {
      for (const place of SEARCHES) refuseTheirs(before, place);
      // What an older OpenClaw was told, the one that came after it does not read, or does not start with.
      const rest = SEARCHES.filter((place) => place !== search).reduce(withoutOurs, before);
      return OURS.reduce((text, path, at) => setValue(text, [...search, ...path], values[at]), rest);
    };
    return [{ does: 'edit', path: config, edit, holdsToken: true }];
  },
  async disconnect(machine) {
    const edit: EditStep['edit'] = (before) => before && SEARCHES.reduce(withoutOurs, before);
    return [{ does: 'edit', path: findOpenClaw(machine).config, edit }];
  },
  /** As OpenClaw will ask, with what stands in its configuration. */
  async verify(machine, folder) {
    const why = await ask(told(machine, 'apiKey'), folder, { model: modelOf(machine), input: 'a text' });
    return why === undefined ? { works: true, tools: 0 } : { works: false, why, tools: 0 };
  },
};

const MOVED = 'The program has another address than OpenClaw was told; connect it again.';

const told = (machine: LocalMachine, name: string): string =>
  String(valueAt(readConfigFile(findOpenClaw(machine).config)?.text ?? '', [...searchOf(machine), 'remote', name]));

const endpointOf = (url: string): string => `${url}/v1`;

const SEARCH = ['memory', 'search'];
const SEARCH_BEFORE = ['agents', 'defaults', 'memorySearch'];
/** Where it may stand: OpenClaw may have been updated since. */
const SEARCHES: readonly (readonly string[])[] = [SEARCH, SEARCH_BEFORE];

/** Up to 2026.7 it stood with the agents; later that key keeps OpenClaw from starting. */
function searchOf(machine: LocalMachine): readonly string[] {
  const [year = 9999, month = 0] = (findOpenClaw(machine).version ?? '').split('.').filter(Boolean).map(Number);
  return year > 2026 || (year === 2026 && month >= 8) ? SEARCH : SEARCH_BEFORE;
}

const modelOf = ({ environment }: LocalMachine): string =>
  environment['HELMDECK_EMBEDDINGS_MODEL'] ?? SETTINGS.HELMDECK_EMBEDDINGS_MODEL.default;

function addressIn(folder: string): string {
  const way = findEndpoint(folder);
  if (way) return way.url;
  throw new Failure(
    'session_unavailable',
    'Agents cannot come at present, so there is no address to tell; start the program, or let them in.',
  );
}

/** A provider of theirs, none on purpose, or no search at all stays. */
function refuseTheirs(text: string, search: readonly string[]): void {
  if (valueAt(text, [...search, 'enabled']) === false) {
    throw new Failure(
      'invalid_input',
      `OpenClaw was told not to search its memory (${search.join('.')}.enabled is false), and that stays; take it out there first if it is not meant any more.`,
    );
  }
  const theirs =
    valueAt(text, [...search, 'provider']) ?? valueAt(text, [...search, 'remote']) ?? valueAt(text, [...search, 'model']);
  if (theirs === undefined || isOurs(text, search)) return;
  throw new Failure(
    'invalid_input',
    theirs === 'none'
      ? `OpenClaw was told to search by words alone (${search.join('.')}.provider is none), and that stays; take it out there first if it is not meant any more.`
      : `OpenClaw searches by a provider of your own (${search.join('.')}), and that stays; take it out there first if you want ours.`,
  );
}

/** By our own token: nobody else makes one that says so. */
function isOurs(text: string, search: readonly string[]): boolean {
  const key = valueAt(text, [...search, 'remote', 'apiKey']);
  if (valueAt(text, [...search, 'provider']) !== PROVIDER || typeof key !== 'string') return false;
  try {
    const { iss } = JSON.parse(Buffer.from(key.split('.')[1] ?? '', 'base64url').toString()) as { iss?: unknown };
    return iss === 'helmdeck';
  } catch {
    return false;
  }
}

function withoutOurs(before: string, search: readonly string[]): string {
  if (!isOurs(before, search)) return before;
  const rest = OURS.reduce((text, path) => dropValue(text, [...search, ...path]), before);
  // What is machine it goes too where nothing else is in it.
  return [
    [...search, 'remote'],
    search,
    ...search.slice(0, -1).map((_name, at) => search.slice(0, search.length - 1 - at)),
  ].reduce((text, path) => (isEmpty(valueAt(text, path)) ? dropValue(text, path) : text), rest);
}

const isEmpty = (value: unknown): boolean => typeof value === 'object' && value !== null && Object.keys(value).length === 0;

/** Why it does not come through; undefined when it does. */
async function ask(token: string, folder: string, body: object): Promise<string | undefined> {
  const way = findEndpoint(folder);
  if (!way) return 'Nobody answers at the address that it was told; start the program, or let agents in.';
  const agent = new ProvedHttpAgent(way.connect);
  try {
    return await post(`${endpointOf(way.url)}/embeddings`, { agent, token, body });
  } catch (error) {
    return error instanceof Failure ? error.message : 'The program ended before it answered; start it again.';
  } finally {
    agent.destroy();
  }
}

interface Question {
  readonly agent: ProvedHttpAgent;
  readonly token: string;
  readonly body: object;
}

/** Asked for like this for the reason that stands in src/listeners/listener.ts. */
function post(address: string, { agent, token, body }: Question): Promise<string | undefined> {
  const { request } = process.getBuiltinModule('node:http');
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const question = request(address, { method: 'POST', headers, agent, timeout: 90_000 }, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('end', () => resolve(response.statusCode === 200 ? undefined : messageIn(Buffer.concat(chunks).toString())));
  });
  question.on('timeout', () => question.destroy());
  question.on('error', reject);
  question.end(JSON.stringify(body));
  return promise;
}

function messageIn(text: string): string {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    if (typeof message === 'string') return message;
  } catch {
    // Told below.
  }
  return 'The program gave an answer that is not one of its own; start it again.';
}
