import { SHORTENING_GRACE } from '../../contract/limits.ts';
import type { TokenScope } from '../../contract/token.ts';
import type { Author, Namespace } from '../store/store.ts';

/** Who is asking. It is read from the token by the door the request came in by, and from nothing in the request. */
export interface Caller {
  readonly subject: string;
  /** Inside a pack session. */
  readonly session?: string;
  readonly client: string;
  /** The door: `rest`, `mcp`, `owner` and so on. */
  readonly transport: string;
  /** The id of the token, or nothing. */
  readonly token: string;
  readonly scopes: ReadonlySet<TokenScope>;
  /** True for the owner in person: their window, their command line, and the token of the running program. No client's token is. */
  readonly owner?: boolean;
  /** The client whose definition makes this call for the caller. It is signed beside the caller (R-DEFINE-03). */
  readonly definedBy?: string;
}

export const namespaceOf = ({ subject, session }: Caller): Namespace =>
  session === undefined ? { subject } : { subject, session };

export const authorOf = ({ client, transport, token, definedBy }: Caller): Author => ({
  client,
  transport,
  token,
  ...(definedBy !== undefined && { definedBy }),
});

/** An admin may do everything. */
export const hasScope = ({ scopes }: Caller, scope: TokenScope): boolean => scopes.has(scope) || scopes.has('admin');

/** Spread into a draft or a change: only the owner may end another client's fact at once. */
export const shorteningGraceFor = (caller: Caller): { readonly grace?: number } =>
  hasScope(caller, 'admin') ? {} : { grace: SHORTENING_GRACE * 1000 };
