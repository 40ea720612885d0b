import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type {
  ClientList,
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
import { HOOK_EVENTS } from '../../contract/names.ts';
import { MintInput } from '../../contract/token.ts';
import type { TokenRegistry } from '../../core/access/token-registry.ts';
import type { ClientConnections } from '../../core/operations/clients-port.ts';
import { formatTime } from '../../core/time/format-time.ts';
import { editsIn, pathsIn, StepRunner, withPathsInErrors } from './changes.ts';
import { ClientRows } from './client-rows.ts';
import { digestOf, readConfigFile, requireWritable } from './config-file.ts';
import {
  digestIn,
  hookCommandsFor,
  MASKED_TOKEN,
  missingFolders,
  previewOf,
  removeIfEmpty,
  removeRestriction,
  requirePresent,
  textsOf,
} from './connection-steps.ts';
import type { Connector, EditStep, ClientEntry, HookOffer, OriginalTexts, Offer, Step, LocalMachine } from './connector.ts';
import { COMMAND, entryFor, hookFile, installLaunchers, startsBridge } from './launch.ts';
import { findProgram } from './programs.ts';
import { type Record, Records } from './records.ts';
import type { TeamServer, TeamToken } from './team-server.ts';
import { verify, verifyHook } from './verify.ts';

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

interface HookChoice {
  readonly hooks?: ConnectClientInput['hooks'] | undefined;
  readonly trust_hooks?: boolean | undefined;
}

interface ConnectionTarget extends HookChoice {
  readonly client: string;
  readonly basis?: string;
  /** Undefined for the memory on this machine. */
  readonly server: TeamServer | undefined;
}

/** The token with which a client is connected. */
interface Grant {
  readonly id: string;
  readonly token: string;
  readonly subject: string;
  readonly expires: number;
  /** The token of the client's hooks. Absent if there are no hooks, and for a server, which gives a client one token. */
  readonly hook?: { readonly id: string; readonly token: string };
  /** Revokes the token, and with it the token of the hooks, if the connection fails. */
  readonly revoke: () => Promise<void>;
}

/**
 * Connects and disconnects clients, and reports their state. Adds our entry to the clients' configuration files and changes
 * nothing else in them. Stores the original files until the client is disconnected.
 */
export class Connections implements ClientConnections {
  readonly #deps: Deps;
  readonly #records: Records;
  readonly #rows: ClientRows;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#records = new Records(deps.folder);
    this.#rows = new ClientRows({ ...deps, records: this.#records });
  }

  async list(): Promise<ClientList> {
    const { connectors, tokens, onClients } = this.#deps;
    // While the memory is locked, tokens cannot be listed, but clients can.
    const listed = await tokens.list().catch(() => undefined);
    const clients = await Promise.all(connectors.map((connector) => this.#rows.row(connector, listed?.tokens)));
    onClients?.(clients);
    return { clients };
  }

  async plan({ client, hooks, trust_hooks }: PlanConnectionInput): Promise<ConnectionPlan> {
    const connector = this.#connector(client);
    const offer = this.#offer(connector, MASKED_TOKEN, { hooks, trust_hooks });
    const { steps, basis } = await this.#prepare(connector, offer);
    const review = await this.#reviewOf(connector, offer.hooks);
    return {
      client,
      basis,
      files: editsIn(steps)
        .map((step) => previewOf(step))
        .filter(({ lines }) => lines.length > 0),
      commands: steps.flatMap((step) => (step.does === 'run' ? [{ program: step.program, args: [...step.args] }] : [])),
      ...(connector.link && { link: connector.link(offer.entry) }),
      ...(connector.hooks && {
        hooks: HOOK_EVENTS.filter((event) => offer.hooks.commands[event] !== undefined),
        possible_hooks: [...(connector.hooks.events ?? HOOK_EVENTS)],
      }),
      ...(review && { review }),
      ...afterwards(connector, review === 'needed'),
    };
  }

  connect({ subject: wanted, quarantine, ...target }: ConnectClientInput): Promise<ConnectReceipt> {
    const { client } = target;
    const { tokens } = this.#deps;
    return this.#connectWith({ ...target, server: undefined }, async ({ name, subject = wanted, scopes }, hasHooks) => {
      const input = { client, subject, quarantine: quarantine ?? (await this.#isQuarantined(client)) };
      const minted = await tokens.mint(MintInput().parse({ ...input, name, ...(scopes && { scopes }) }));
      const revoke = async (): Promise<void> => void (await tokens.revoke({ id: minted.id, unrecorded: false }));
      const grant = { ...minted, expires: Date.parse(minted.expires_at), revoke };
      if (!hasHooks) return grant;
      try {
        const hookInput = MintInput().parse({ ...input, name: `${name}, hooks`, scopes: ['memory:brief'] });
        return { ...grant, hook: await tokens.mint(hookInput, { of: minted.id }) };
      } catch (error) {
        await revoke();
        throw error;
      }
    });
  }

  /** Whether the token of the client's present connection is quarantined. Connecting again keeps this, unless the owner chooses. */
  async #isQuarantined(client: string): Promise<boolean> {
    const token = this.#records.read(client)?.token ?? this.#records.tokenId(client);
    const { tokens } = await this.#deps.tokens.list();
    return tokens.find(({ id }) => id === token)?.quarantined === true;
  }

  /** Connects a client to a server on another machine, with a token of that server (R-TEAM-08). */
  connectToServer(target: Omit<ConnectClientInput, 'subject'>, server: TeamServer, token: TeamToken): Promise<ConnectReceipt> {
    return this.#connectWith({ ...target, server }, async ({ name, transport }) => {
      if (transport === 'http') {
        throw new Failure('invalid_input', `${name} can be connected only to the memory on this machine.`);
      }
      return { ...token, revoke: () => Promise.resolve() };
    });
  }

  #connectWith(
    { client, basis, server, ...choice }: ConnectionTarget,
    grantTo: (connector: Connector, hasHooks: boolean) => Promise<Grant>,
  ): Promise<ConnectReceipt> {
    return this.#inSequence(async () => {
      const connector = this.#connector(client);
      const offer = this.#offer(connector, MASKED_TOKEN, choice);
      const plan = await this.#prepare(connector, offer);
      if (basis !== undefined && basis !== plan.basis) {
        throw new Failure(
          'invalid_input',
          'The configuration files have changed since the preview, so the client was not connected. Check the new preview and connect again.',
        );
      }
      requireSameMemory(connector, this.#records.read(client), server);
      const grant = await grantTo(connector, Object.keys(offer.hooks.commands).length > 0);
      try {
        installLaunchers(this.#deps.folder);
        await this.#apply(connector, { ...offer, token: grant.token }, grant, server);
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
        ...afterwards(connector, (await this.#reviewOf(connector, offer.hooks)) === 'needed'),
      };
    });
  }

  disconnect({ client }: DisconnectClientInput): Promise<DisconnectReceipt> {
    return this.#inSequence(async () => {
      const connector = this.#connector(client);
      const record = this.#records.read(client);
      const look = await this.#rows.look(connector);
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
      const ids = record?.server ? [] : [token, record?.hook_token].filter((id) => id !== undefined);
      for (const id of ids) await this.#deps.tokens.revoke({ id, unrecorded: true });
      this.#records.drop(client);
      return { client, files };
    });
  }

  async verify({ client }: VerifyClientInput): Promise<ClientVerification> {
    const connector = this.#connector(client);
    const look = await this.#rows.look(connector);
    if (look.at === 'present' && connector.verify) return connector.verify(this.#deps.machine, this.#deps.folder);
    if (look.at === 'broken') return { works: false, why: look.why, tools: 0 };
    // For the extension bundle, test the recorded entry: the bundle contains the same bridge and uses the same token.
    const entry = look.at === 'bundled' ? this.#records.read(client)?.entry : look.at === 'present' ? look.entry : undefined;
    const program = entry && this.#programOf(entry);
    if (entry && program === undefined) return { works: false, why: entry.command === COMMAND ? NO_COMMAND : OWN_NODE, tools: 0 };
    if (entry && program !== undefined) {
      const record = this.#records.read(client);
      const verified = await verify({ ...entry, command: program }, this.#deps.machine, record?.entry);
      return verified.works && record ? { ...verified, ...(await this.#verifyHooks(client, record)) } : verified;
    }
    return {
      works: false,
      why: "The client's configuration contains no entry for Helmdeck Memory. Connect the client first.",
      tools: 0,
    };
  }

  /** Runs the script of the hooks with the Node that we wrote into their commands. Returns the problem, if there is one. */
  async #verifyHooks(client: string, { entry, hooks = {} }: Record): Promise<Partial<ClientVerification>> {
    if (Object.keys(hooks).length === 0) return {};
    const { machine, folder } = this.#deps;
    const why = await verifyHook({ node: entry.command, file: hookFile(folder), client }, machine);
    return why === undefined ? {} : { works: false, why: `The hooks do not work: ${why}.` };
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
  async #prepare(connector: Connector, offer: Offer): Promise<{ steps: readonly Step[]; basis: string }> {
    const { machine } = this.#deps;
    const { installed } = await connector.detect(machine);
    if (!installed) {
      throw new Failure(
        'not_found',
        `${connector.name} was not found on this machine. Install ${connector.name}, or start Helmdeck Memory with the program's folder in the PATH. Then try again.`,
      );
    }
    const steps = withPathsInErrors(await connector.connect(machine, offer));
    for (const step of editsIn(steps)) {
      requireWritable(step.path);
      step.edit(readConfigFile(step.path)?.text);
    }
    const paths = pathsIn(steps).map((path) => [path, digestOf(readConfigFile(path)?.bytes)]);
    const runs = steps.flatMap((step) => (step.does === 'run' ? [[step.program, ...step.args]] : []));
    const basis = createHash('sha256')
      .update(JSON.stringify([paths, runs, offer.hooks]))
      .digest('hex');
    return { steps, basis };
  }

  #offer(connector: Connector, token: string, { hooks, trust_hooks: trust = false }: HookChoice): Offer {
    const { id } = connector;
    const { machine, folder } = this.#deps;
    const entry = entryFor(machine, folder, connector);
    const commands = hookCommandsFor(connector, {
      entry,
      machine,
      folder,
      chosen: hooks,
      earlier: this.#records.read(id)?.hooks,
    });
    return { client: id, entry, folder, tokenFile: this.#records.tokenFile(id), token, hooks: { commands, trust } };
  }

  /** Returns whether the client's user must review the offered hooks. Undefined if the client runs hooks without a review. */
  async #reviewOf({ hooks: support }: Connector, { commands, trust }: HookOffer): Promise<ConnectionPlan['review']> {
    if (support?.review === undefined || Object.keys(commands).length === 0) return undefined;
    if (support.isFromPlugin?.(this.#deps.machine)) return 'needed';
    if (trust) return 'recorded';
    const found = await support.look(this.#deps.machine);
    const isUnchanged = found.commands.length > 0 && found.commands.every((hook) => commands[hook.event] === hook.command);
    return isUnchanged && !found.waitsForReview ? undefined : 'needed';
  }

  async #apply(
    connector: Connector,
    offer: Offer,
    { id: tokenId, token, subject, hook }: Grant,
    server: TeamServer | undefined,
  ): Promise<void> {
    const { machine, now, tokens } = this.#deps;
    const { id } = connector;
    const old = this.#records.read(id);
    const oldTokens = old && this.#records.tokens(id);
    const oldServer = old && this.#records.server(id);
    const steps = withPathsInErrors(await connector.connect(machine, offer));
    const runner = new StepRunner({ machine, name: connector.name, steps });
    const rollback = editsIn(await connector.disconnect(machine, textsOf(runner.before)));
    const removals = old ? editsIn(await connector.disconnect(machine, this.#originals(id, old))) : [];
    const record: Record = {
      subject,
      token: tokenId,
      ...(hook && { hook_token: hook.id }),
      hooks: offer.hooks.commands,
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
    this.#records.saveTokens(id, { main: token, hook: hook?.token });
    this.#records.saveServer(id, server);
    try {
      for (const folder of folders) mkdirSync(folder, { mode: 0o700 });
      await runner.run();
      requirePresent(connector, await this.#rows.look(connector));
    } catch (error) {
      await runner.rollBack(rollback);
      for (const folder of folders.toReversed()) removeIfEmpty(folder);
      if (old) {
        this.#records.save(id, old);
        if (oldTokens) this.#records.saveTokens(id, oldTokens);
        this.#records.saveServer(id, oldServer);
      } else this.#records.drop(id);
      throw error;
    }
    const files = record.files.map((file) =>
      runner.before.has(file.path) ? { ...file, after: digestOf(readConfigFile(file.path)?.bytes) } : file,
    );
    this.#records.save(id, { ...record, files });
    this.#records.deleteUnused(id, record);
    const replaced = old && !old.server ? [old.token, old.hook_token].filter((one) => one !== undefined) : [];
    for (const one of replaced) await tokens.revoke({ id: one, unrecorded: true });
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
    // Files of the earlier connection that this one does not change, such as that of hooks that the owner has turned off.
    const others = old?.files.filter(({ path }) => !current.has(path)) ?? [];
    const changed = [...current].map(([path, bytes]) => {
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
    return [...changed, ...others];
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

function afterwards({ afterwards: usual, hooks }: Connector, needsReview: boolean): { afterwards?: string } {
  const steps = [usual, needsReview ? hooks?.review : undefined].filter((step) => step !== undefined);
  return steps.length === 0 ? {} : { afterwards: steps.join(' ') };
}
