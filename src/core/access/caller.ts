import { SHORTENING_GRACE } from '../../contract/limits.ts';
import type { TokenScope } from '../../contract/token.ts';
import type { Author, Namespace } from '../store/store.ts';

/** The identity under which a call is made. The listener takes it from the token, never from the request body. */
export interface Caller {
  readonly subject: string;
  /** The id of the pack session, if the call is made in a session. */
  readonly session?: string;
  readonly client: string;
  /** The interface over which the call arrived, such as `rest`, `mcp` or `owner`. */
  readonly transport: string;
  /** The id of the token, or an empty string if there is no token. */
  readonly token: string;
  readonly scopes: ReadonlySet<TokenScope>;
  /** True for the window, the command line and the running program's own token. Never true for the token of a client. */
  readonly owner?: boolean;
  /** True if everything that the caller writes waits in the Inbox until the owner accepts it. */
  readonly quarantined?: true;
  /** Names of the packs that the owner offers to the client. Undefined means all packs. */
  readonly packs?: ReadonlySet<string>;
  /**
   * The client whose pipeline makes this call for the caller. Stored encrypted with the entry, as part of its author
   * (R-DEFINE-03).
   */
  readonly definedBy?: string;
}

export const namespaceOf = ({ subject, session }: Caller): Namespace =>
  session === undefined ? { subject } : { subject, session };

export const authorOf = ({ client, transport, token, definedBy }: Caller): Author => ({
  client,
  origin: transport,
  token,
  ...(definedBy !== undefined && { definedBy }),
});

/**
 * Whether the caller has a scope. The scope `admin` includes every other scope, and `memory:read` includes `memory:brief`: who can read
 * all facts can read some of them.
 */
export const hasScope = ({ scopes }: Pick<Caller, 'scopes'>, scope: TokenScope): boolean =>
  scopes.has(scope) || scopes.has('admin') || (scope === 'memory:brief' && scopes.has('memory:read'));

/**
 * Returns the grace period as a field to spread into a draft or a change. Only the owner is allowed to expire another client's
 * fact without a grace period.
 */
export const shorteningGraceFor = (caller: Caller): { readonly grace?: number } =>
  hasScope(caller, 'admin') ? {} : { grace: SHORTENING_GRACE * 1000 };

/** Returns the clients responsible for an entry, under the field names that all responses use. */
export const signatures = ({
  client,
  definedBy,
}: {
  readonly client: string;
  readonly definedBy?: string | undefined;
}): { client: string; defined_by?: string } => ({ client, ...(definedBy !== undefined && { defined_by: definedBy }) });
