import { Failure } from '../../contract/failure.ts';
import { TOKEN_SCOPES } from '../../contract/limits.ts';
import type { TokenScope } from '../../contract/token.ts';
import { clientId } from '../store/entry.ts';
import { type Caller, hasScope } from './caller.ts';
import type { TokenGrant, TokenRegistry } from './token-registry.ts';

/** Who is responsible for something that one client defines and another runs. */
export interface DefinitionAuthor {
  readonly client: string;
  /** The id of the token that was used. */
  readonly token: string;
  /** True for the owner in person. */
  readonly owner: boolean;
}

/** Only its author and the owner change or delete a definition (R-DEFINE-01). */
export const mayChange = (caller: Caller, definer: DefinitionAuthor): boolean =>
  hasScope(caller, 'admin') || (!definer.owner && isClient(caller, definer));

/**
 * The one rule for what one client defines and another runs: the author is responsible, and the rights are those of both
 * (R-DEFINE-02). A definition is a way to let others work; without this rule it would also be a way to borrow their rights.
 */
export class Authorship {
  readonly #tokens: Pick<TokenRegistry, 'grants'> | undefined;

  /** Without tokens, every author can do only what it runs itself. */
  constructor(tokens: Pick<TokenRegistry, 'grants'> | undefined) {
    this.#tokens = tokens;
  }

  /**
   * The runner with the rights that its author has as well, as both sign what it writes. Asked again before each step: a token may
   * have been revoked, paused or expired since the step before.
   */
  async effectiveCaller(runner: Caller, definer: DefinitionAuthor): Promise<Caller> {
    const isOwn = definer.owner ? runner.owner === true : isClient(runner, definer);
    if (isOwn) return runner;
    const signed = { ...runner, definedBy: definer.client };
    if (definer.owner) return signed;
    const rights = await this.#rightsOf(definer, runner.subject);
    if (rights.size === 0) throw orphaned(definer);
    return { ...signed, scopes: new Set(TOKEN_SCOPES.filter((scope) => has(runner.scopes, scope) && has(rights, scope))) };
  }

  /** Of many definers at once: whether a definition of theirs would run for this caller. */
  async runnableBy(runner: Caller): Promise<(definer: DefinitionAuthor) => boolean> {
    const valid = (await this.#tokens?.grants(runner.subject)) ?? [];
    return (definer) => definer.owner || isClient(runner, definer) || valid.some((grant) => isClient(grant, definer));
  }

  async #rightsOf(definer: DefinitionAuthor, subject: string): Promise<ReadonlySet<TokenScope>> {
    const valid = (await this.#tokens?.grants(subject)) ?? [];
    return new Set(valid.filter((grant) => isClient(grant, definer)).flatMap(({ scopes }) => [...scopes]));
  }
}

const isClient = (one: Pick<TokenGrant, 'client' | 'token'>, definer: DefinitionAuthor): boolean =>
  clientId(one) === clientId(definer);

const has = (scopes: ReadonlySet<TokenScope>, scope: TokenScope): boolean => scopes.has(scope) || scopes.has('admin');

const orphaned = ({ client }: DefinitionAuthor): Failure =>
  new Failure(
    'insufficient_scope',
    `Its author, ${client}, has no valid token any more, so it cannot run. Ask the owner of this memory to adopt it.`,
  );
