import { Failure } from '../../../contract/failure.ts';
import { findEndpoint } from '../../../listeners/endpoint.ts';
import { ProvedHttpAgent } from '../../../listeners/owner-client.ts';
import { SETTINGS } from '../../config/settings-table.ts';
import { readConfigFile } from '../config-file.ts';
import type { Connector, EditStep, EntryState, LocalMachine } from '../connector.ts';
import { json5 } from '../json-text.ts';
import { findOpenClaw } from './program.ts';

const { dropValue, setValue, valueAt } = json5;

/** Keys that we write, relative to OpenClaw's search settings. */
const OUR_VALUES = [['provider'], ['model'], ['remote', 'baseUrl'], ['remote', 'apiKey']] as const;
const PROVIDER = 'openai-compatible';

/**
 * Connects OpenClaw's own semantic search to our embeddings. Edits OpenClaw's configuration file, because OpenClaw's program
 * accepts values only on the command line, where other users could see the token. The token gives access to no memory.
 */
export const openClawEmbeddings: Connector = {
  id: 'openclaw-embeddings',
  name: "OpenClaw's semantic search",
  transport: 'http',
  scopes: ['memory:read'],
  // A subject that has no memory, because no user has this name.
  subject: 'embeddings',
  afterwards: 'OpenClaw rebuilds its index at the next search. To rebuild the index now, run: openclaw memory index --force',
  async detect(machine) {
    const { state: _, ...detected } = findOpenClaw(machine);
    return detected;
  },
  async look(machine): Promise<EntryState> {
    const { text } = readConfigFile(findOpenClaw(machine).config) ?? {};
    return text !== undefined && isOurs(text, searchOf(machine)) ? { at: 'present' } : { at: 'absent' };
  },
  outdated(machine, folder) {
    if (valueOf(machine, ['model']) !== modelOf(machine)) return OTHER_MODEL;
    const endpoint = findEndpoint(folder);
    return endpoint && storedValue(machine, 'baseUrl') !== embeddingsUrl(endpoint.url) ? MOVED : undefined;
  },
  async connect(machine, { folder, token }) {
    const { config } = findOpenClaw(machine);
    const search = searchOf(machine);
    const values = [PROVIDER, modelOf(machine), embeddingsUrl(requireAddress(folder)), token];
    const edit = (before = ''): string => {
      for (const path of SEARCHES) requireNoOtherProvider(before, path);
      // Remove our settings from the path that other OpenClaw versions use: this version ignores them there or does not start.
      const rest = SEARCHES.filter((path) => path !== search).reduce(withoutOurs, before);
      return OUR_VALUES.reduce((text, path, at) => setValue(text, [...search, ...path], values[at]), rest);
    };
    return [{ does: 'edit', path: config, edit, holdsToken: true }];
  },
  async disconnect(machine) {
    const edit: EditStep['edit'] = (before) => before && SEARCHES.reduce(withoutOurs, before);
    return [{ does: 'edit', path: findOpenClaw(machine).config, edit }];
  },
  /** Sends the same request as OpenClaw, with the values in OpenClaw's configuration. */
  async verify(machine, folder) {
    const why = await requestEmbedding(storedValue(machine, 'apiKey'), folder, { model: modelOf(machine), input: 'a text' });
    return why === undefined ? { works: true, tools: 0 } : { works: false, why, tools: 0 };
  },
};

const MOVED = 'The address of Helmdeck Memory has changed since OpenClaw was connected. Connect OpenClaw again.';

const OTHER_MODEL =
  'Helmdeck Memory now serves another embedding model than when OpenClaw was connected. Connect OpenClaw again.';

const valueOf = (machine: LocalMachine, path: readonly string[]): string =>
  String(valueAt(readConfigFile(findOpenClaw(machine).config)?.text ?? '', [...searchOf(machine), ...path]));

const storedValue = (machine: LocalMachine, name: string): string => valueOf(machine, ['remote', name]);

const embeddingsUrl = (url: string): string => `${url}/v1`;

const SEARCH = ['memory', 'search'];
const SEARCH_BEFORE = ['agents', 'defaults', 'memorySearch'];
/** The paths of the search settings in all OpenClaw versions, because OpenClaw can be updated while it is connected. */
const SEARCHES: readonly (readonly string[])[] = [SEARCH, SEARCH_BEFORE];

/**
 * Returns the path of the search settings in this OpenClaw version. Versions up to 2026.7 use `agents.defaults.memorySearch`;
 * newer versions do not start if that key exists.
 */
function searchOf(machine: LocalMachine): readonly string[] {
  const [year = 9999, month = 0] = (findOpenClaw(machine).version ?? '').split('.').filter(Boolean).map(Number);
  return year > 2026 || (year === 2026 && month >= 8) ? SEARCH : SEARCH_BEFORE;
}

const modelOf = ({ environment, embeddingsModel }: LocalMachine): string =>
  embeddingsModel?.() ?? environment['HELMDECK_EMBEDDINGS_MODEL'] ?? SETTINGS.HELMDECK_EMBEDDINGS_MODEL.default;

function requireAddress(folder: string): string {
  const endpoint = findEndpoint(folder);
  if (endpoint) return endpoint.url;
  throw new Failure(
    'session_unavailable',
    "Agents can't connect at the moment, so OpenClaw cannot be given an address. Start Helmdeck Memory, or resume agent access.",
  );
}

/** Throws if OpenClaw uses another embeddings provider, or if the owner disabled OpenClaw's search. */
function requireNoOtherProvider(text: string, search: readonly string[]): void {
  if (valueAt(text, [...search, 'enabled']) === false) {
    throw new Failure(
      'invalid_input',
      `OpenClaw's memory search is disabled (${search.join('.')}.enabled is false), so nothing was changed. Remove that setting first.`,
    );
  }
  const other =
    valueAt(text, [...search, 'provider']) ?? valueAt(text, [...search, 'remote']) ?? valueAt(text, [...search, 'model']);
  if (other === undefined || isOurs(text, search)) return;
  throw new Failure(
    'invalid_input',
    other === 'none'
      ? `OpenClaw is set to search without embeddings (${search.join('.')}.provider is none), so nothing was changed. Remove that setting first.`
      : `OpenClaw already uses another embeddings provider (${search.join('.')}), so nothing was changed. Remove that setting first.`,
  );
}

/** True if the settings contain one of our tokens. Only this program issues tokens with our issuer. */
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
  const rest = OUR_VALUES.reduce((text, path) => dropValue(text, [...search, ...path]), before);
  // Also remove objects that become empty.
  return [
    [...search, 'remote'],
    search,
    ...search.slice(0, -1).map((_name, at) => search.slice(0, search.length - 1 - at)),
  ].reduce((text, path) => (isEmpty(valueAt(text, path)) ? dropValue(text, path) : text), rest);
}

const isEmpty = (value: unknown): boolean => typeof value === 'object' && value !== null && Object.keys(value).length === 0;

/** Requests an embedding. Returns the reason for a failure, or undefined. */
async function requestEmbedding(token: string, folder: string, body: object): Promise<string | undefined> {
  const endpoint = findEndpoint(folder);
  if (!endpoint)
    return "Helmdeck Memory does not respond at the address in OpenClaw's configuration. Start Helmdeck Memory, or resume agent access.";
  const agent = new ProvedHttpAgent(endpoint.connect);
  try {
    return await post(`${embeddingsUrl(endpoint.url)}/embeddings`, { agent, token, body });
  } catch (error) {
    return error instanceof Failure ? error.message : 'Helmdeck Memory exited before it responded. Start Helmdeck Memory again.';
  } finally {
    agent.destroy();
  }
}

interface EmbeddingRequest {
  readonly agent: ProvedHttpAgent;
  readonly token: string;
  readonly body: object;
}

/**
 * Sends the request. Returns the error message, or undefined if the request succeeds. Loads node:http on demand; listener.ts
 * explains why.
 */
function post(address: string, { agent, token, body }: EmbeddingRequest): Promise<string | undefined> {
  const { request } = process.getBuiltinModule('node:http');
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const sent = request(address, { method: 'POST', headers, agent, timeout: 90_000 }, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('end', () => resolve(response.statusCode === 200 ? undefined : messageIn(Buffer.concat(chunks).toString())));
  });
  sent.on('timeout', () => sent.destroy());
  sent.on('error', reject);
  sent.end(JSON.stringify(body));
  return promise;
}

function messageIn(text: string): string {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    if (typeof message === 'string') return message;
  } catch {
    // The response is not JSON. The error is reported below.
  }
  return 'Helmdeck Memory returned an unexpected response. Restart Helmdeck Memory and try again.';
}
