import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, rmdirSync } from 'node:fs';
import { dirname, isAbsolute } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type {
  ClientList,
  ClientRow,
  ConnectClientInput,
  ConnectionPlan,
  ConnectReceipt,
  DisconnectClientInput,
  DisconnectReceipt,
  PlanConnectionInput,
  ClientVerification,
  VerifyClientInput,
} from '../../contract/client.ts';
import { Failure } from '../../contract/failure.ts';
import { MintInput, type TokenList } from '../../contract/token.ts';
import type { TokenRegistry } from '../../core/access/token-registry.ts';
import type { ClientConnections } from '../../core/operations/clients-port.ts';
import { formatTime } from '../../core/time/format-time.ts';
import { Changes, editsOf, naming, namingFiles, pathsOf } from './changes.ts';
import { digestOf, isOpen, keepMode, readConfigFile, requireWritable } from './config-file.ts';
import type { Connector, EditStep, Entry, Held, Look, Offer, Step, Surroundings } from './connector.ts';
import { linesChanged } from './diff.ts';
import { COMMAND, entryFor, placeBridge, startsBridge, startsBridgeFor } from './launch.ts';
import { findProgram } from './programs.ts';
import { type Record, Records } from './records.ts';
import { verify } from './verify.ts';

/** Stands for a token where what would be done is only shown. */
const DOTS = '••••••••';

const NO_COMMAND = `${COMMAND} is not found from here; start this program where it is in the PATH, or ask the client something instead.`;
const OWN_NODE = 'It runs on the Node of this client, which cannot be started from here; ask the client something instead.';

interface Deps {
  readonly connectors: readonly Connector[];
  readonly around: Surroundings;
  readonly tokens: Pick<TokenRegistry, 'mint' | 'list' | 'revoke'>;
  readonly folder: string;
  readonly now: () => number;
  /** Hears how all of them stand whenever that was looked at, and after one was connected or disconnected. */
  readonly hear?: (clients: ClientList['clients']) => void;
}

type TokenRow = TokenList['tokens'][number];

/**
 * Connects programs of others, and knows how they stand. Their files get what is ours and lose nothing; what was there before is
 * kept until they are disconnected.
 */
export class Connections implements ClientConnections {
  readonly #deps: Deps;
  readonly #records: Records;
  #working: Promise<unknown> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#records = new Records(deps.folder);
  }

  async list(): Promise<ClientList> {
    const { connectors, tokens, hear } = this.#deps;
    // Without the key it is not known who has a token, but well who is connected.
    const listed = await tokens.list().catch(() => undefined);
    const clients = await Promise.all(connectors.map((connector) => this.#row(connector, listed?.tokens)));
    hear?.(clients);
    return { clients };
  }

  async plan({ client }: PlanConnectionInput): Promise<ConnectionPlan> {
    const connector = this.#connector(client);
    const { steps, basis } = await this.#prepare(connector);
    return {
      client,
      basis,
      files: editsOf(steps)
        .map((step) => shownOf(step))
        .filter(({ lines }) => lines.length > 0),
      commands: steps.flatMap((step) => (step.does === 'run' ? [{ program: step.program, args: [...step.args] }] : [])),
      ...(connector.link && { link: connector.link(this.#offer(connector, DOTS).entry) }),
      ...afterwards(connector),
    };
  }

  connect({ client, subject: wanted, basis }: ConnectClientInput): Promise<ConnectReceipt> {
    return this.#inTurn(async () => {
      const connector = this.#connector(client);
      const { subject = wanted } = connector;
      const plan = await this.#prepare(connector);
      if (basis !== undefined && basis !== plan.basis) {
        throw new Failure(
          'invalid_input',
          'The files have changed since this plan was shown, so nothing was done; look at a new one.',
        );
      }
      const { tokens, folder } = this.#deps;
      placeBridge(folder);
      const minted = await tokens.mint(
        MintInput().parse({ name: connector.name, client, subject, ...(connector.scopes && { scopes: connector.scopes }) }),
      );
      try {
        await this.#carryOut(connector, subject, minted);
      } catch (error) {
        await tokens.revoke({ id: minted.id, unrecorded: false });
        throw error;
      }
      return {
        client,
        subject,
        token: minted.id,
        expires_at: minted.expires_at,
        verified: await this.verify({ client }),
        ...afterwards(connector),
      };
    });
  }

  disconnect({ client }: DisconnectClientInput): Promise<DisconnectReceipt> {
    return this.#inTurn(async () => {
      const connector = this.#connector(client);
      const record = this.#records.read(client);
      const look = await this.#look(connector);
      if (!record && look.at === 'absent') {
        throw new Failure('not_found', `${connector.name} is not connected, so there is nothing to take back.`);
      }
      // Nobody could give it back.
      if (!record && look.at === 'present' && !(look.entry && startsBridge(look.entry))) {
        throw new Failure(
          'invalid_input',
          `${connector.name} was not connected by this program: what stands there under our name is its owner's own, and is left as it is; take it out there.`,
        );
      }
      const files = await this.#takeBack(connector, record);
      const token = record?.token ?? this.#records.tokenId(client);
      if (token !== undefined) await this.#deps.tokens.revoke({ id: token, unrecorded: true });
      this.#records.drop(client);
      return { client, files };
    });
  }

  async verify({ client }: VerifyClientInput): Promise<ClientVerification> {
    const connector = this.#connector(client);
    const look = await this.#look(connector);
    if (look.at === 'present' && connector.verify) return connector.verify(this.#deps.around, this.#deps.folder);
    if (look.at === 'broken') return { works: false, why: look.why, tools: 0 };
    // What is in a bundle is the same bridge, and takes the same token.
    const entry = look.at === 'bundled' ? this.#records.read(client)?.entry : look.at === 'present' ? look.entry : undefined;
    const program = entry && this.#programOf(entry);
    if (entry && program === undefined) return { works: false, why: entry.command === COMMAND ? NO_COMMAND : OWN_NODE, tools: 0 };
    if (entry && program !== undefined)
      return verify({ ...entry, command: program }, this.#deps.around, this.#records.read(client)?.entry);
    return { works: false, why: 'There is no entry of ours in its configuration; connect it first.', tools: 0 };
  }

  /** What an entry starts, as it would be found from here. */
  #programOf({ command }: Entry): string | undefined {
    if (isAbsolute(command)) return command;
    return command === COMMAND ? findProgram(this.#deps.around, command) : undefined;
  }

  #connector(client: string): Connector {
    const connector = this.#deps.connectors.find(({ id }) => id === client);
    if (connector) return connector;
    throw new Failure('not_found', 'There is no client with this id; list them to see which there are.');
  }

  /** What would be done, and everything that speaks against it. */
  async #prepare(connector: Connector): Promise<{ steps: readonly Step[]; basis: string }> {
    const { around } = this.#deps;
    const { installed } = await connector.detect(around);
    if (!installed) {
      throw new Failure(
        'not_found',
        `${connector.name} was not found on this machine; install it, or start Helmdeck Memory where it is in the PATH, and try again.`,
      );
    }
    const steps = namingFiles(await connector.connect(around, this.#offer(connector, DOTS)));
    for (const step of editsOf(steps)) {
      requireWritable(step.path);
      step.edit(readConfigFile(step.path)?.text);
    }
    const paths = pathsOf(steps).map((path) => [path, digestOf(readConfigFile(path)?.bytes)]);
    const runs = steps.flatMap((step) => (step.does === 'run' ? [[step.program, ...step.args]] : []));
    const basis = createHash('sha256')
      .update(JSON.stringify([paths, runs]))
      .digest('hex');
    return { steps, basis };
  }

  #offer(connector: Connector, token: string): Offer {
    const { id } = connector;
    const { around, folder } = this.#deps;
    return { client: id, entry: entryFor(around, folder, connector), folder, tokenFile: this.#records.tokenFile(id), token };
  }

  async #carryOut(connector: Connector, subject: string, minted: { id: string; token: string }): Promise<void> {
    const { around, now, tokens } = this.#deps;
    const { id } = connector;
    const old = this.#records.read(id);
    const oldToken = old && this.#records.token(id);
    const offer = this.#offer(connector, minted.token);
    const steps = namingFiles(await connector.connect(around, offer));
    const changes = new Changes({ around, name: connector.name, steps });
    const back = editsOf(await connector.disconnect(around, textsOf(changes.before)));
    const without = old ? editsOf(await connector.disconnect(around, this.#heldBefore(id, old))) : [];
    const record: Record = {
      subject,
      token: minted.id,
      at: now(),
      entry: { ...offer.entry, args: [...offer.entry.args] },
      files: this.#keepBefore(id, old, changes, without),
      folders: old?.folders ?? [],
    };
    const folders = missingFolders(steps);
    record.folders.push(...folders);
    // From here on it can be put back, whatever happens.
    this.#records.keep(id, record);
    if (!old) this.#records.setTokenAside(id);
    this.#records.keepToken(id, minted.token);
    try {
      for (const folder of folders) mkdirSync(folder, { mode: 0o700 });
      await changes.carryOut();
      requireShown(connector, await this.#look(connector));
    } catch (error) {
      await changes.putBack(back);
      for (const folder of folders.toReversed()) removeIfEmpty(folder);
      if (old) {
        this.#records.keep(id, old);
        this.#records.keepToken(id, oldToken);
      } else this.#records.drop(id);
      throw error;
    }
    const files = record.files.map((file) => ({ ...file, after: digestOf(readConfigFile(file.path)?.bytes) }));
    this.#records.keep(id, { ...record, files });
    this.#records.tidy(id, record);
    if (old) await tokens.revoke({ id: old.token, unrecorded: true });
  }

  /** What each file is to be again one day: as it was before we first came, unless somebody has changed it since. */
  #keepBefore(
    client: string,
    old: Record | undefined,
    { before: found, open }: Changes,
    without: readonly EditStep[],
  ): Record['files'] {
    return [...found].map(([path, bytes]) => {
      const known = old?.files.find((file) => file.path === path);
      const mode = open.get(path) ?? known?.mode;
      const was = { path, ...(mode !== undefined && { mode }) };
      if (known && known.after === digestOf(bytes)) return { ...was, before: known.before };
      const text = bytes && without.find((step) => step.path === path)?.edit(bytes.toString('utf8'));
      const kept = text === undefined ? bytes : Buffer.from(text);
      const before = digestOf(kept);
      if (kept) this.#records.keepBytes(client, before, kept);
      return { ...was, before };
    });
  }

  #heldBefore(client: string, record: Record | undefined): Held {
    const files = record?.files ?? [];
    return new Map(files.map(({ path, before }) => [path, this.#records.bytes(client, before)?.toString('utf8')]));
  }

  /** Files that nobody changed since become what they were; from the others what is ours is taken out. */
  async #takeBack(connector: Connector, record: Record | undefined): Promise<DisconnectReceipt['files']> {
    const { around } = this.#deps;
    const kept = (record?.files ?? []).filter(
      ({ after, before }) => after !== undefined && (before === 'none' || this.#records.bytes(connector.id, before)),
    );
    const asBefore = (step: EditStep): EditStep => {
      const file = kept.find(({ path }) => path === step.path);
      if (!file) return step;
      const before = this.#records.bytes(connector.id, file.before)?.toString('utf8');
      return { ...step, edit: (text) => (digestIn(text) === file.after ? before : step.edit(text)) };
    };
    const own = namingFiles(await connector.disconnect(around, this.#heldBefore(connector.id, record)));
    const steps: Step[] = own.map((step) => {
      if (step.does === 'edit') return asBefore(step);
      return step.does === 'run' && step.instead ? { ...step, instead: asBefore(step.instead) } : step;
    });
    // What it would not be looked for in any more, such as after an update of the client.
    const named = new Set(pathsOf(own));
    for (const { path } of kept) if (!named.has(path)) steps.push(asBefore({ does: 'edit', path, edit: (text) => text }));
    // All that can be refused is refused before anything is done.
    for (const { path, edit } of editsOf(steps)) {
      const file = readConfigFile(path);
      if (edit(file?.text) !== file?.text) requireWritable(path);
    }
    const changes = new Changes({ around, name: connector.name, steps });
    await changes.carryOut();
    for (const { path, mode } of record?.files ?? []) if (mode !== undefined) openAgain(path, mode);
    for (const folder of (record?.folders ?? []).toReversed()) removeIfEmpty(folder);
    const files = editsOf(steps).map(({ path }) => {
      const before = kept.find((file) => file.path === path)?.before;
      const now = digestOf(readConfigFile(path)?.bytes);
      return { path, as_before: now === before, changed: now !== digestOf(changes.before.get(path)) };
    });
    // Of one that its owner deleted, or where nothing of ours was left, there is nothing to say.
    return files.filter((file) => file.as_before || file.changed).map(({ path, as_before }) => ({ path, as_before }));
  }

  async #row(connector: Connector, tokens: readonly TokenRow[] | undefined): Promise<ClientRow> {
    const { id, name, transport } = connector;
    const { installed, version, config } = await connector.detect(this.#deps.around);
    const look = await this.#look(connector);
    const kept = this.#kept(id);
    const { record, token: held } = 'why' in kept ? {} : kept;
    const token = tokens?.find((one) => one.id === held);
    const files = { client: id, record, token: existsSync(this.#records.tokenFile(id)) };
    const { state, why } = 'why' in kept ? { state: 'broken' as const, why: kept.why } : standing(look, installed, files);
    // What lies there beside an entry of somebody else's is not what that uses.
    const shown = record || state === 'connected' ? token : undefined;
    const over = held !== undefined && tokens && (!token || Date.parse(token.expires_at) <= this.#deps.now());
    return {
      id,
      name,
      transport,
      installed,
      ...(version !== undefined && { version }),
      config,
      state: state === 'connected' && over ? 'no_token' : state,
      ...(why !== undefined && { why }),
      ...(record ? { subject: record.subject, connected_at: formatTime(record.at) } : shown && { subject: shown.subject }),
      ...(shown && { token: tokenOf(shown) }),
    };
  }

  /** A configuration that cannot be read is how it stands, and no reason to tell of no other. */
  async #look(connector: Connector): Promise<Look> {
    try {
      const { around, folder } = this.#deps;
      const look = await connector.look(around);
      const why = look.at === 'present' ? connector.outdated?.(around, folder) : undefined;
      return why === undefined ? look : { at: 'broken', why };
    } catch (error) {
      const { config } = await connector.detect(this.#deps.around);
      const said = naming(config, error);
      if (said instanceof Failure) return { at: 'broken', why: said.message };
      throw error;
    }
  }

  /** The same for what we keep ourselves. */
  #kept(client: string): { readonly record?: Record; readonly token?: string } | { readonly why: string } {
    try {
      const record = this.#records.read(client);
      const token = record?.token ?? this.#records.tokenId(client);
      return { ...(record && { record }), ...(token !== undefined && { token }) };
    } catch (error) {
      if (error instanceof Failure) return { why: error.message };
      throw error;
    }
  }

  /** Two that change the same file would undo each other. */
  #inTurn<T>(job: () => Promise<T>): Promise<T> {
    const done = this.#working.then(job);
    this.#working = done.then(() => this.#deps.hear && this.list()).catch(() => undefined);
    return done;
  }
}

const afterwards = (connector: Connector): { afterwards?: string } =>
  connector.afterwards === undefined ? {} : { afterwards: connector.afterwards };

const textsOf = (bytes: Changes['before']): Held => new Map([...bytes].map(([path, one]) => [path, one?.toString('utf8')]));

const digestIn = (text: string | undefined): string => digestOf(text === undefined ? undefined : Buffer.from(text));

function requireShown({ name }: Connector, look: Look): void {
  if (look.at === 'present' || look.at === 'bundled') return;
  const why = look.at === 'broken' ? look.why : `${name} does not show our entry after it was put there.`;
  throw new Failure('handler_failed', `${why} It was not connected, and nothing was changed.`);
}

/** One that its owner has opened since stays so. */
function openAgain(path: string, mode: number): void {
  if (!isOpen(readConfigFile(path)?.mode ?? mode)) keepMode(path, mode);
}

function shownOf({ path, edit, holdsToken }: EditStep): ConnectionPlan['files'][number] {
  const file = readConfigFile(path);
  const before = file?.text ?? '';
  return {
    path: file?.target ?? path,
    created: file === undefined,
    ...(holdsToken && { holds_token: true }),
    lines: linesChanged(unseen(before), unseen(edit(file?.text) ?? '')),
  };
}

/** One of ours that stands there already is not shown either. */
const unseen = (text: string): string => text.replaceAll(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, DOTS);

/** Those that an edit needs and that are not there, the outermost first. */
function missingFolders(steps: readonly Step[]): string[] {
  const missing: string[] = [];
  for (const path of pathsOf(steps)) {
    const own: string[] = [];
    for (let folder = dirname(path); !existsSync(folder) && !missing.includes(folder); folder = dirname(folder))
      own.unshift(folder);
    missing.push(...own);
  }
  return missing;
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Something of others' is in it, or it has gone.
  }
}

function standing(
  look: Look,
  installed: boolean,
  { client, record, token }: { client: string; record: Record | undefined; token: boolean },
): { state: ClientRow['state']; why?: string } {
  if (look.at === 'broken') return { state: 'broken', why: look.why };
  if (look.at === 'absent') return { state: record ? 'wiped' : installed ? 'not_connected' : 'not_installed' };
  if (look.at === 'bundled' && !record) return { state: 'not_connected' };
  const entry = look.at === 'present' ? look.entry : undefined;
  const ours = record ? !entry || starts(entry, record.entry) : entry && startsBridgeFor(entry, client);
  if (!ours) return { state: 'differs' };
  if (look.disabled) return { state: 'broken', why: 'Our entry is switched off in its configuration; switch it on there.' };
  const needsIt = entry !== undefined || look.at === 'bundled';
  if (needsIt && !token)
    return { state: 'broken', why: 'The file with its token has gone from the data folder; connect it again.' };
  const gone = entry && goneOf(entry);
  return gone === undefined
    ? { state: 'connected' }
    : { state: 'broken', why: `${gone} has gone, so it cannot be started; connect it again.` };
}

/** What its owner has added to the environment is theirs. */
const starts = ({ env, ...entry }: Entry, { env: own, ...ours }: Entry): boolean =>
  isDeepStrictEqual(entry, ours) && Object.entries(own).every(([name, value]) => env[name] === value);

const goneOf = ({ command, args: [bridge] }: Entry): string | undefined =>
  [command, bridge].find((path) => path !== undefined && isAbsolute(path) && !existsSync(path));

const tokenOf = ({ id, paused, expires_at, last_used_at }: TokenRow): NonNullable<ClientRow['token']> => ({
  id,
  paused: paused ?? false,
  expires_at,
  ...(last_used_at !== undefined && { last_used_at }),
});
