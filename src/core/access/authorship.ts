import { Failure } from '../../contract/failure.ts';
import { TOKEN_SCOPES } from '../../contract/names.ts';
import { type Caller, hasScope } from './caller.ts';
import { isSameClient } from './fair-share.ts';
import type { OfferedPacks } from './pack-offers.ts';
import type { TokenGrant, TokenRegistry } from './token-registry.ts';

/** The author of a definition that other clients can run. The author is responsible for the definition. */
export interface DefinitionAuthor {
  readonly client: string;
  /** The id of the token with which the definition was written. */
  readonly token: string;
  /** True if the owner wrote or adopted the definition. */
  readonly owner: boolean;
}

/** Whether the caller is allowed to change or delete a definition: only its author and the owner are (R-DEFINE-01). */
export const mayChange = (caller: Caller, author: DefinitionAuthor): boolean =>
  hasScope(caller, 'admin') || (!author.owner && isSameClient(caller, author));

/**
 * Decides the rights of a definition that one client wrote and another client runs. The definition has only the rights that both
 * clients have (R-DEFINE-02). Otherwise a client could use the rights of other clients by writing definitions that they run.
 */
export class Authorship {
  readonly #tokens: Pick<TokenRegistry, 'grants' | 'offers'> | undefined;

  /** If `tokens` is undefined, no author has rights, so each client can run only its own definitions. */
  constructor(tokens: Pick<TokenRegistry, 'grants' | 'offers'> | undefined) {
    this.#tokens = tokens;
  }

  /**
   * Returns the runner with only the rights that the author has too. The names of both clients are recorded as the author of each
   * write. Call this before each step, because a token may have been revoked or paused, or may have expired, after the previous
   * step.
   */
  async effectiveCaller(runner: Caller, author: DefinitionAuthor): Promise<Caller> {
    const isOwn = author.owner ? runner.owner === true : isSameClient(runner, author);
    if (isOwn) return runner;
    const signed = { ...runner, definedBy: author.client };
    if (author.owner) return signed;
    const grants = await this.#grantsOf(author, runner.subject);
    const rights = new Set(grants.flatMap(({ scopes }) => [...scopes]));
    if (rights.size === 0) throw orphaned(author);
    const packs = inBoth(runner.packs, this.#tokens?.offers.of(author.client));
    const scopes = new Set(TOKEN_SCOPES.filter((scope) => hasScope(runner, scope) && hasScope({ scopes: rights }, scope)));
    // An author who may write only with the owner's approval must not write through another client.
    const writers = grants.filter((grant) => hasScope(grant, 'memory:write'));
    const isQuarantined = (writers.length > 0 ? writers : grants).every(({ quarantined }) => quarantined);
    return { ...signed, scopes, ...(packs && { packs }), ...(isQuarantined && { quarantined: true }) };
  }

  async runnableBy(runner: Caller): Promise<(author: DefinitionAuthor) => boolean> {
    const grants = (await this.#tokens?.grants(runner.subject)) ?? [];
    return (author) => author.owner || isSameClient(runner, author) || grants.some((grant) => isSameClient(grant, author));
  }

  async #grantsOf(author: DefinitionAuthor, subject: string): Promise<readonly TokenGrant[]> {
    const grants = (await this.#tokens?.grants(subject)) ?? [];
    return grants.filter((grant) => isSameClient(grant, author));
  }
}

const inBoth = (one: OfferedPacks, other: OfferedPacks): OfferedPacks =>
  one && other ? one.intersection(other) : (one ?? other);

const orphaned = ({ client }: DefinitionAuthor): Failure =>
  new Failure(
    'insufficient_scope',
    `The author of this pipeline, ${client}, has no valid token any more, so the pipeline cannot run. Ask the owner of this memory to adopt it.`,
  );
