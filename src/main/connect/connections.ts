import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, rmdirSync } from 'node:fs';
import { dirname, isAbsolute } from 'node:path';
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
import { MintInput } from '../../contract/token.ts';
import type { TokenRegistry } from '../../core/access/token-registry.ts';
import type { ClientConnections } from '../../core/operations/clients-port.ts';
import { formatTime } from '../../core/time/format-time.ts';
import { addPath, editsIn, pathsIn, StepRunner, withPathsInErrors } from './changes.ts';
import { stateOf, tokenOf, type TokenRow } from './client-state.ts';
import { digestOf, isReadableByOthers, restoreMode, readConfigFile, requireWritable } from './config-file.ts';
import type { Connector, EditStep, ClientEntry, OriginalTexts, EntryState, Offer, Step, LocalMachine } from './connector.ts';
import { changedLines } from './diff.ts';
import { COMMAND, entryFor, installBridge, startsBridge } from './launch.ts';
import { findProgram } from './programs.ts';
import { type Record, Records } from './records.ts';
import type { TeamServer, TeamToken } from './team-server.ts';
import { verify } from './verify.ts';

const MASKED_TOKEN = '••••••••';

const NO_COMMAND = `The command ${COMMAND} was not found, so the connection cannot be tested from here. Add the command to the PATH of Helmdeck Memory, or test the connection by asking the client a question.`;
const OWN_NODE =
  'This client starts the bridge with its own Node, so the connection cannot be tested from here. Test the connection by asking the client a question.';

interface Deps {
  readonly connectors: readonly Connector[];
  readonly machine: LocalMachine;
  readonly tokens: Pick<TokenRegistry, 'mint' | 'list' | 'revoke'>;
  readonly folder: string;
  readonly now: () => number;
  /** Called with the state of all clients after each listing, connection and disconnection. */
  readonly onClients?: (clients: ClientList['clients']) => void;
}

interface ConnectionTarget {
  readonly client: string;
  readonly basis: string | undefined;
  /** Undefined for the memory on this machine. */
  readonly server: TeamServer | undefined;
}

/** The token with which a client is connected. */
interface Grant {
  readonly id: string;
  readonly token: string;
  readonly subject: string;
  readonly expires: number;
  /** Revokes the token if the connection fails. */
  readonly revoke: () => Promise<void>;
}

/**
 * Connects and disconnects clients, and reports their state. Adds our entry to the clients' configuration files and changes
 * nothing else in them. Stores the original files until the client is disconnected.
 */
export class Connections implements ClientConnections {
  readonly #deps: Deps;
  readonly #records: Records;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#records = new Records(deps.folder);
  }

  async list(): Promise<ClientList> {
    const { connectors, tokens, onClients } = this.#deps;
    // While the memory is locked, tokens cannot be listed, but clients can.
    const listed = await tokens.list().catch(() => undefined);
    const clients = await Promise.all(connectors.map((connector) => this.#row(connector, listed?.tokens)));
    onClients?.(clients);
    return { clients };
  }

  async plan({ client }: PlanConnectionInput): Promise<ConnectionPlan> {
    const connector = this.#connector(client);
    const { steps, basis } = await this.#prepare(connector);
    return {
      client,
      basis,
      files: editsIn(steps)
        .map((step) => previewOf(step))
        .filter(({ lines }) => lines.length > 0),
      commands: steps.flatMap((step) => (step.does === 'run' ? [{ program: step.program, args: [...step.args] }] : [])),
      ...(connector.link && { link: connector.link(this.#offer(connector, MASKED_TOKEN).entry) }),
      ...afterwards(connector),
    };
  }

  connect({ client, subject: wanted, basis, quarantine = false }: ConnectClientInput): Promise<ConnectReceipt> {
    const { tokens } = this.#deps;
    return this.#connectWith({ client, basis, server: undefined }, async ({ name, subject = wanted, scopes }) => {
      const minted = await tokens.mint(MintInput().parse({ name, client, subject, quarantine, ...(scopes && { scopes }) }));
      return {
        ...minted,
        expires: Date.parse(minted.expires_at),
        revoke: async () => void (await tokens.revoke({ id: minted.id, unrecorded: false })),
      };
    });
  }

  /** Connects a client to a server on another machine, with a token of that server (R-TEAM-08). */
  connectToServer(
    { client, basis }: Pick<ConnectClientInput, 'client' | 'basis'>,
    server: TeamServer,
    token: TeamToken,
  ): Promise<ConnectReceipt> {
    return this.#connectWith({ client, basis, server }, async ({ name, transport }) => {
      if (transport === 'http') {
        throw new Failure('invalid_input', `${name} can be connected only to the memory on this machine.`);
      }
      return { ...token, revoke: () => Promise.resolve() };
    });
  }

  #connectWith(
    { client, basis, server }: ConnectionTarget,
    grantTo: (connector: Connector) => Promise<Grant>,
  ): Promise<ConnectReceipt> {
    return this.#inSequence(async () => {
      const connector = this.#connector(client);
      const plan = await this.#prepare(connector);
      if (basis !== undefined && basis !== plan.basis) {
        throw new Failure(
          'invalid_input',
          'The configuration files have changed since the preview, so the client was not connected. Check the new preview and connect again.',
        );
      }
      requireSameMemory(connector, this.#records.read(client), server);
      const grant = await grantTo(connector);
      try {
        installBridge(this.#deps.folder);
        await this.#apply(connector, grant, server);
      } catch (error) {
        await grant.revoke();
        throw error;
      }
      return {
        client,
        subject: grant.subject,
        token: grant.id,
        expires_at: formatTime(grant.expires),
        verified: await this.verify({ client }),
        ...afterwards(connector),
      };
    });
  }

  disconnect({ client }: DisconnectClientInput): Promise<DisconnectReceipt> {
    return this.#inSequence(async () => {
      const connector = this.#connector(client);
      const record = this.#records.read(client);
      const look = await this.#look(connector);
      if (!record && look.at === 'absent') {
        throw new Failure('not_found', `${connector.name} is not connected, so it cannot be disconnected.`);
      }
      // Refuse to remove an entry of unknown origin, because without a record we could not restore the entry.
      if (!record && look.at === 'present' && !(look.entry && startsBridge(look.entry))) {
        throw new Failure(
          'invalid_input',
          `The entry for Helmdeck Memory in ${connector.name} was not created by this program, so it was not removed. Remove the entry in ${connector.name} if you no longer need it.`,
        );
      }
      const files = await this.#restoreFiles(connector, record);
      const token = record?.token ?? this.#records.tokenId(client);
      // Only the admin of a server can revoke its tokens.
      if (token !== undefined && !record?.server) await this.#deps.tokens.revoke({ id: token, unrecorded: true });
      this.#records.drop(client);
      return { client, files };
    });
  }

  async verify({ client }: VerifyClientInput): Promise<ClientVerification> {
    const connector = this.#connector(client);
    const look = await this.#look(connector);
    if (look.at === 'present' && connector.verify) return connector.verify(this.#deps.machine, this.#deps.folder);
    if (look.at === 'broken') return { works: false, why: look.why, tools: 0 };
    // For the extension bundle, test the recorded entry: the bundle contains the same bridge and uses the same token.
    const entry = look.at === 'bundled' ? this.#records.read(client)?.entry : look.at === 'present' ? look.entry : undefined;
    const program = entry && this.#programOf(entry);
    if (entry && program === undefined) return { works: false, why: entry.command === COMMAND ? NO_COMMAND : OWN_NODE, tools: 0 };
    if (entry && program !== undefined)
      return verify({ ...entry, command: program }, this.#deps.machine, this.#records.read(client)?.entry);
    return {
      works: false,
      why: "The client's configuration contains no entry for Helmdeck Memory. Connect the client first.",
      tools: 0,
    };
  }

  /** Returns the absolute path of the program that an entry starts. Searches the PATH for our own command. */
  #programOf({ command }: ClientEntry): string | undefined {
    if (isAbsolute(command)) return command;
    return command === COMMAND ? findProgram(this.#deps.machine, command) : undefined;
  }

  #connector(client: string): Connector {
    const connector = this.#deps.connectors.find(({ id }) => id === client);
    if (connector) return connector;
    throw new Failure('not_found', 'There is no client with this id. List the clients to see their ids.');
  }

  /** Returns the steps that connect the client. Throws if the client is not installed or if an edit would fail. */
  async #prepare(connector: Connector): Promise<{ steps: readonly Step[]; basis: string }> {
    const { machine } = this.#deps;
    const { installed } = await connector.detect(machine);
    if (!installed) {
      throw new Failure(
        'not_found',
        `${connector.name} was not found on this machine. Install ${connector.name}, or start Helmdeck Memory with the program's folder in the PATH. Then try again.`,
      );
    }
    const steps = withPathsInErrors(await connector.connect(machine, this.#offer(connector, MASKED_TOKEN)));
    for (const step of editsIn(steps)) {
      requireWritable(step.path);
      step.edit(readConfigFile(step.path)?.text);
    }
    const paths = pathsIn(steps).map((path) => [path, digestOf(readConfigFile(path)?.bytes)]);
    const runs = steps.flatMap((step) => (step.does === 'run' ? [[step.program, ...step.args]] : []));
    const basis = createHash('sha256')
      .update(JSON.stringify([paths, runs]))
      .digest('hex');
    return { steps, basis };
  }

  #offer(connector: Connector, token: string): Offer {
    const { id } = connector;
    const { machine, folder } = this.#deps;
    return { client: id, entry: entryFor(machine, folder, connector), folder, tokenFile: this.#records.tokenFile(id), token };
  }

  async #apply(connector: Connector, { id: tokenId, token, subject }: Grant, server: TeamServer | undefined): Promise<void> {
    const { machine, now, tokens } = this.#deps;
    const { id } = connector;
    const old = this.#records.read(id);
    const oldToken = old && this.#records.token(id);
    const oldServer = old && this.#records.server(id);
    const offer = this.#offer(connector, token);
    const steps = withPathsInErrors(await connector.connect(machine, offer));
    const runner = new StepRunner({ machine, name: connector.name, steps });
    const rollback = editsIn(await connector.disconnect(machine, textsOf(runner.before)));
    const removals = old ? editsIn(await connector.disconnect(machine, this.#originals(id, old))) : [];
    const record: Record = {
      subject,
      token: tokenId,
      ...(server && { server: server.url }),
      at: now(),
      entry: { ...offer.entry, args: [...offer.entry.args] },
      files: this.#saveOriginals(id, old, runner, removals),
      folders: old?.folders ?? [],
    };
    const folders = missingFolders(steps);
    record.folders.push(...folders);
    // Save the record before changing files, so that the files can be restored even after a crash.
    this.#records.save(id, record);
    if (!old) this.#records.backUpOwnToken(id);
    this.#records.saveToken(id, token);
    this.#records.saveServer(id, server);
    try {
      for (const folder of folders) mkdirSync(folder, { mode: 0o700 });
      await runner.run();
      requirePresent(connector, await this.#look(connector));
    } catch (error) {
      await runner.rollBack(rollback);
      for (const folder of folders.toReversed()) removeIfEmpty(folder);
      if (old) {
        this.#records.save(id, old);
        this.#records.saveToken(id, oldToken);
        this.#records.saveServer(id, oldServer);
      } else this.#records.drop(id);
      throw error;
    }
    const files = record.files.map((file) => ({ ...file, after: digestOf(readConfigFile(file.path)?.bytes) }));
    this.#records.save(id, { ...record, files });
    this.#records.deleteUnused(id, record);
    if (old && !old.server) await tokens.revoke({ id: old.token, unrecorded: true });
  }

  /**
   * Saves each file as it was before the first connection. If another program has changed the file since, saves the changed file
   * without our entry.
   */
  #saveOriginals(
    client: string,
    old: Record | undefined,
    { before: current, exposedModes }: StepRunner,
    removals: readonly EditStep[],
  ): Record['files'] {
    return [...current].map(([path, bytes]) => {
      const known = old?.files.find((one) => one.path === path);
      const mode = exposedModes.get(path) ?? known?.mode;
      const file = { path, ...(mode !== undefined && { mode }) };
      if (known && known.after === digestOf(bytes)) return { ...file, before: known.before };
      const text = bytes && removals.find((step) => step.path === path)?.edit(bytes.toString('utf8'));
      const original = text === undefined ? bytes : Buffer.from(text);
      const before = digestOf(original);
      if (original) this.#records.saveOriginal(client, before, original);
      return { ...file, before };
    });
  }

  #originals(client: string, record: Record | undefined): OriginalTexts {
    const files = record?.files ?? [];
    return new Map(files.map(({ path, before }) => [path, this.#records.original(client, before)?.toString('utf8')]));
  }

  /**
   * Restores the original bytes of each file that has not changed since the client was connected. In the other files, removes
   * only our entry.
   */
  async #restoreFiles(connector: Connector, record: Record | undefined): Promise<DisconnectReceipt['files']> {
    const { machine } = this.#deps;
    const restorable = (record?.files ?? []).filter(
      ({ after, before }) => after !== undefined && (before === 'none' || this.#records.original(connector.id, before)),
    );
    const restoring = (step: EditStep): EditStep => {
      const file = restorable.find(({ path }) => path === step.path);
      if (!file) return step;
      const before = this.#records.original(connector.id, file.before)?.toString('utf8');
      return { ...step, edit: (text) => (digestIn(text) === file.after ? before : step.edit(text)) };
    };
    const own = withPathsInErrors(await connector.disconnect(machine, this.#originals(connector.id, record)));
    const steps: Step[] = own.map((step) => {
      if (step.does === 'edit') return restoring(step);
      return step.does === 'run' && step.instead ? { ...step, instead: restoring(step.instead) } : step;
    });
    // Also restore files that the client no longer uses, for example since an update of the client.
    const known = new Set(pathsIn(own));
    for (const { path } of restorable) if (!known.has(path)) steps.push(restoring({ does: 'edit', path, edit: (text) => text }));
    // Check that every file is writable before changing the first file.
    for (const { path, edit } of editsIn(steps)) {
      const file = readConfigFile(path);
      if (edit(file?.text) !== file?.text) requireWritable(path);
    }
    const runner = new StepRunner({ machine, name: connector.name, steps });
    await runner.run();
    for (const { path, mode } of record?.files ?? []) if (mode !== undefined) removeRestriction(path, mode);
    for (const folder of (record?.folders ?? []).toReversed()) removeIfEmpty(folder);
    const files = editsIn(steps).map(({ path }) => {
      const before = restorable.find((file) => file.path === path)?.before;
      const now = digestOf(readConfigFile(path)?.bytes);
      return { path, as_before: now === before, changed: now !== digestOf(runner.before.get(path)) };
    });
    // Omit files that are unchanged because the owner deleted them or they no longer contained our entry.
    return files.filter((file) => file.as_before || file.changed).map(({ path, as_before }) => ({ path, as_before }));
  }

  async #row(connector: Connector, tokens: readonly TokenRow[] | undefined): Promise<ClientRow> {
    const { id, name, transport } = connector;
    const { installed, version, config } = await connector.detect(this.#deps.machine);
    const look = await this.#look(connector);
    const stored = this.#stored(id);
    const { record, token: tokenId } = 'why' in stored ? {} : stored;
    const token = tokens?.find((one) => one.id === tokenId);
    const files = { client: id, record, token: existsSync(this.#records.tokenFile(id)) };
    const { state, why } = 'why' in stored ? { state: 'broken' as const, why: stored.why } : stateOf(look, installed, files);
    // Show the token only for an entry that we created: another entry does not use the stored token.
    const shown = record || state === 'connected' ? token : undefined;
    const now = this.#deps.now();
    const isInvalid = record?.server
      ? this.#records.hasExpired(id, now)
      : tokenId !== undefined && tokens && (!token || Date.parse(token.expires_at) <= now);
    return {
      id,
      name,
      transport,
      installed,
      ...(version !== undefined && { version }),
      config,
      state: state === 'connected' && isInvalid ? 'no_token' : state,
      ...(why !== undefined && { why }),
      ...(record ? { subject: record.subject, connected_at: formatTime(record.at) } : shown && { subject: shown.subject }),
      ...(record?.server !== undefined && { server: record.server }),
      ...(shown && { token: tokenOf(shown) }),
    };
  }

  /**
   * Returns the state of our entry in the client's configuration. An error in one client's configuration becomes that client's
   * state, so that the other clients are still listed.
   */
  async #look(connector: Connector): Promise<EntryState> {
    try {
      const { machine, folder } = this.#deps;
      const look = await connector.look(machine);
      const why = look.at === 'present' ? connector.outdated?.(machine, folder) : undefined;
      return why === undefined ? look : { at: 'broken', why };
    } catch (error) {
      const { config } = await connector.detect(this.#deps.machine);
      const failure = addPath(config, error);
      if (failure instanceof Failure) return { at: 'broken', why: failure.message };
      throw error;
    }
  }

  /** Returns the stored record and token id, or the reason why they cannot be read. */
  #stored(client: string): { readonly record?: Record; readonly token?: string } | { readonly why: string } {
    try {
      const record = this.#records.read(client);
      const token = record?.token ?? this.#records.tokenId(client);
      return { ...(record && { record }), ...(token !== undefined && { token }) };
    } catch (error) {
      if (error instanceof Failure) return { why: error.message };
      throw error;
    }
  }

  /** Runs jobs one after another, because concurrent jobs could overwrite each other's changes to a file. */
  #inSequence<T>(job: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(job);
    this.#queue = done.then(() => this.#deps.onClients && this.list()).catch(() => undefined);
    return done;
  }
}

/**
 * Throws if the client is connected to another memory. That connection must be undone first, so that its token is revoked, or the
 * owner is told that it is still valid on its server.
 */
function requireSameMemory({ id, name }: Connector, old: Record | undefined, server: TeamServer | undefined): void {
  if (!old || old.server === server?.url) return;
  const place = old.server === undefined ? 'the memory on this machine' : `the server ${old.server}`;
  throw new Failure(
    'invalid_input',
    `${name} is connected to ${place}. Disconnect it first with: helmdeck-memory disconnect ${id}`,
  );
}

const afterwards = (connector: Connector): { afterwards?: string } =>
  connector.afterwards === undefined ? {} : { afterwards: connector.afterwards };

const textsOf = (bytes: StepRunner['before']): OriginalTexts =>
  new Map([...bytes].map(([path, one]) => [path, one?.toString('utf8')]));

const digestIn = (text: string | undefined): string => digestOf(text === undefined ? undefined : Buffer.from(text));

function requirePresent({ name }: Connector, look: EntryState): void {
  if (look.at === 'present' || look.at === 'bundled') return;
  const why = look.at === 'broken' ? look.why : `${name} does not show the entry for Helmdeck Memory after it was added.`;
  throw new Failure('handler_failed', `${why} The client was not connected, and its files were restored.`);
}

/** Restores the file's original mode, unless the owner has let other users read the file since the client was connected. */
function removeRestriction(path: string, mode: number): void {
  if (!isReadableByOthers(readConfigFile(path)?.mode ?? mode)) restoreMode(path, mode);
}

function previewOf({ path, edit, holdsToken }: EditStep): ConnectionPlan['files'][number] {
  const file = readConfigFile(path);
  const before = file?.text ?? '';
  return {
    path: file?.target ?? path,
    created: file === undefined,
    ...(holdsToken && { holds_token: true }),
    lines: changedLines(maskTokens(before), maskTokens(edit(file?.text) ?? '')),
  };
}

/** Replaces every token in the text with dots, including a token that the file already contained. */
const maskTokens = (text: string): string => text.replaceAll(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, MASKED_TOKEN);

/** Returns the folders that must be created for the edits, outermost first. */
function missingFolders(steps: readonly Step[]): string[] {
  const missing: string[] = [];
  for (const path of pathsIn(steps)) {
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
    // Ignore the error: the folder contains other files or was deleted.
  }
}
