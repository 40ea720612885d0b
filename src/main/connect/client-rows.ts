import { existsSync } from 'node:fs';
import type { ClientRow } from '../../contract/client.ts';
import { Failure } from '../../contract/failure.ts';
import { formatTime } from '../../core/time/format-time.ts';
import { addPath } from './changes.ts';
import { hookStateOf, stateOf, tokenOf, type TokenRow } from './client-state.ts';
import type { Connector, EntryState, LocalMachine } from './connector.ts';
import { hookFile } from './launch.ts';
import type { Record, Records } from './records.ts';

interface Deps {
  readonly machine: LocalMachine;
  readonly records: Records;
  readonly folder: string;
  readonly now: () => number;
}

/** Reports the state of each client's connection. Changes nothing. */
export class ClientRows {
  readonly #deps: Deps;
  readonly #records: Records;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#records = deps.records;
  }

  async row(connector: Connector, tokens: readonly TokenRow[] | undefined): Promise<ClientRow> {
    const { id, name, transport } = connector;
    const { installed, version, config } = await connector.detect(this.#deps.machine);
    const look = await this.look(connector);
    const stored = this.#stored(id);
    const { record, token: tokenId } = 'why' in stored ? {} : stored;
    const token = tokens?.find((one) => one.id === tokenId);
    const hooks = await this.#hooks(connector, record, tokens);
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
      ...(hooks && { hooks }),
    };
  }

  /**
   * Returns the state of our entry in the client's configuration. An error in one client's configuration becomes that client's
   * state, so that the other clients are still listed.
   */
  async look(connector: Connector): Promise<EntryState> {
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

  /** Returns the state of our hooks in the client's configuration. Undefined if we use no hooks of the client. */
  async #hooks(
    { id, name, hooks }: Connector,
    record: Record | undefined,
    tokens: readonly TokenRow[] | undefined,
  ): Promise<ClientRow['hooks']> {
    if (!hooks) return undefined;
    const { machine, folder } = this.#deps;
    const wanted = record?.hooks ?? {};
    const again = `Connect ${name} again.`;
    try {
      const found = await hooks.look(machine);
      const state = hookStateOf(found, wanted, name);
      if (state.state !== 'on' && state.state !== 'waits_for_review') return state;
      const lacksToken = !record?.server && record?.hook_token === undefined;
      if (lacksToken || (record?.hook_token !== undefined && !existsSync(this.#records.hookTokenFile(id))))
        return { ...state, state: 'differs', why: `The token file of the hooks is missing. ${again}` };
      if (record?.hook_token !== undefined && tokens && !tokens.some((token) => token.id === record.hook_token))
        return { ...state, state: 'differs', why: `The token of the hooks was revoked. ${again}` };
      if (hookFile(folder) === undefined)
        return { ...state, state: 'differs', why: `The script of the hooks is missing or was changed. ${again}` };
      return state;
    } catch (error) {
      if (error instanceof Failure) return { events: [], state: 'differs', why: error.message };
      throw error;
    }
  }
}
