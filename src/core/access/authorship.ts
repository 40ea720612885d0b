import { Failure } from '../../contract/failure.ts';
import { TOKEN_SCOPES } from '../../contract/limits.ts';
import type { TokenScope } from '../../contract/token.ts';
import { type Caller, hasScope } from './caller.ts';
import { isSameClient } from './fair-share.ts';
import type { TokenRegistry } from './token-registry.ts';

/** The author of a definition that other clients can run. The author is responsible for it. */
export interface DefinitionAuthor {
  readonly client: string;
  /** The id of the token that was used. */
  readonly token: string;
  /** True for the owner in person. */
  readonly owner: boolean;
}

/** Only its author and the owner change or delete a definition (R-DEFINE-01). */
export const mayChange = (caller: Caller, author: DefinitionAuthor): boolean =>
  hasScope(caller, 'admin') || (!author.owner && isSameClient(caller, author));

/**
 * Decides the rights of a definition that one client wrote and another runs: it has only the rights that both clients have
 * (R-DEFINE-02). Otherwise a client could borrow the rights of other clients by writing definitions for them.
 */
export class Authorship {
  readonly #tokens: Pick<TokenRegistry, 'grants'> | undefined;

  /** Without tokens no author has rights, so each client can run only its own definitions. */
  constructor(tokens: Pick<TokenRegistry, 'grants'> | undefined) {
    this.#tokens = tokens;
  }

  /**
   * The runner as caller, limited to the rights that the author has too. Both names sign what it writes. Call it again before each
   * step, because a token may have been revoked, paused or expired since the previous one.
   */
  async effectiveCaller(runner: Caller, author: DefinitionAuthor): Promise<Caller> {
    const isOwn = author.owner ? runner.owner === true : isSameClient(runner, author);
    if (isOwn) return runner;
    const signed = { ...runner, definedBy: author.client };
    if (author.owner) return signed;
    const rights = await this.#rightsOf(author, runner.subject);
    if (rights.size === 0) throw orphaned(author);
    return { ...signed, scopes: new Set(TOKEN_SCOPES.filter((scope) => has(runner.scopes, scope) && has(rights, scope))) };
  }

  /** Returns a function that tells whether a definition by the given author can run for this caller. */
  async runnableBy(runner: Caller): Promise<(author: DefinitionAuthor) => boolean> {
    const grants = (await this.#tokens?.grants(runner.subject)) ?? [];
    return (author) => author.owner || isSameClient(runner, author) || grants.some((grant) => isSameClient(grant, author));
  }

  async #rightsOf(author: DefinitionAuthor, subject: string): Promise<ReadonlySet<TokenScope>> {
    const grants = (await this.#tokens?.grants(subject)) ?? [];
    return new Set(grants.filter((grant) => isSameClient(grant, author)).flatMap(({ scopes }) => [...scopes]));
  }
}

const has = (scopes: ReadonlySet<TokenScope>, scope: TokenScope): boolean => scopes.has(scope) || scopes.has('admin');

const orphaned = ({ client }: DefinitionAuthor): Failure =>
  new Failure(
    'insufficient_scope',
    `Its author, ${client}, has no valid token any more, so it cannot run. Ask the owner of this memory to adopt it.`,
  );
