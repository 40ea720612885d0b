import { SHORTENING_GRACE } from '../../contract/limits.ts';
import type { TokenScope } from '../../contract/token.ts';
import type { Author, Namespace } from '../store/store.ts';

/** The identity of a call. The listener reads it from the token, and never from the request body. */
export interface Caller {
  readonly subject: string;
  /** Set in a pack session. */
  readonly session?: string;
  readonly client: string;
  /** How the call arrived, such as `rest`, `mcp` or `owner`. */
  readonly transport: string;
  /** The id of the token, or an empty string. */
  readonly token: string;
  readonly scopes: ReadonlySet<TokenScope>;
  /** True for the window, the command line and the token of the running program. Never true for a token of a client. */
  readonly owner?: boolean;
  /** The client whose pipeline makes this call for the caller. Sealed with the entry as part of the author (R-DEFINE-03). */
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

/** The `admin` scope includes every other. */
export const hasScope = ({ scopes }: Caller, scope: TokenScope): boolean => scopes.has(scope) || scopes.has('admin');

/** Spread it into a draft or a change. Only the owner may expire another client's fact without a grace period. */
export const shorteningGraceFor = (caller: Caller): { readonly grace?: number } =>
  hasScope(caller, 'admin') ? {} : { grace: SHORTENING_GRACE * 1000 };
