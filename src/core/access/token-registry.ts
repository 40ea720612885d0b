import { hash, type KeyObject, randomBytes } from 'node:crypto';
import type { PackOffer, PauseReceipt, PauseTokenInput } from '../../contract/client.ts';
import { Failure } from '../../contract/failure.ts';
import {
  AUDIENCE,
  ISSUER,
  type MintInput,
  type MintReceipt,
  type RevokeInput,
  type RevokeReceipt,
  type TokenClaims,
  type TokenList,
  type TokenScope,
} from '../../contract/token.ts';
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../contract/units.ts';
import type { Vault } from '../store/store.ts';
import { PAUSED_TOKEN, SIGNING_SECRET, TOKEN_RECORD } from '../store/vault.ts';
import type { Caller } from './caller.ts';
import { invalidToken, ownersToken, verifyToken, signingKey, signToken, type TokenIdentity, verifiedOf } from './jwt.ts';
import { PackOffers } from './pack-offers.ts';
import { summaryOf, time, type TokenRecord } from './token-record.ts';

/** Maximum characters of a token. Longer tokens are rejected before they are hashed. */
const TOKEN_CHARACTERS = 8192;
/** Maximum accepted difference between the clocks of the signer and this machine, in milliseconds. */
const GRACE_MS = MINUTE_MS;
/** Minimum milliseconds between two stored uses of a token. */
const USE_MS = MINUTE_MS;
const LISTED_AFTER_EXPIRY_MS = 30 * DAY_MS;
const MAX_TOKENS = 200;
const MAX_CACHED_TOKENS = 256;
/** The expiry of a revocation if the expiry of its token is unknown. */
const NEVER = Number.MAX_SAFE_INTEGER;

interface Deps {
  readonly vault: Vault;
  /** Returns the time that decides whether tokens have expired, in milliseconds since 1970. */
  now(): number;
  /** Returns true if the result of `now` may be wrong. Then no token record is deleted because of its age. */
  doubtful(): boolean;
  /** The signing secret from the environment. If it is absent, a secret is generated and stored in the vault. */
  readonly secret?: string | undefined;
}

export interface TokenGrant {
  /** The id of the token. */
  readonly token: string;
  readonly client: string;
  readonly scopes: ReadonlySet<TokenScope>;
  readonly quarantined: boolean;
}

interface Use {
  at: number;
  /** The time when the program last tried to store the use, in milliseconds since 1970. */
  tried: number;
  stored: number;
}

/** The last token that was verified on a connection. If the client sends the same token again, it is not hashed again. */
export interface VerifiedToken {
  token: string;
  digest: string;
}

/**
 * Creates, verifies, pauses and revokes tokens (R-AUTH). The signing secret stays in RAM until the program exits, even while the
 * memory is locked. A request with a valid token is then refused because of the lock, and not because of an invalid token.
 */
export class TokenRegistry implements AsyncDisposable {
  readonly offers: PackOffers;
  readonly #deps: Deps;
  readonly #owner: { readonly token: string; readonly digest: string; readonly verified: TokenIdentity };
  #key: KeyObject | undefined;
  #loading: Promise<KeyObject> | undefined;
  /** The verified tokens by digest, least recently used first. Does not contain the text of any token. */
  readonly #verified = new Map<string, TokenIdentity>();
  readonly #revoked = new Set<string>();
  readonly #paused = new Set<string>();
  readonly #recorded = new Set<string>();
  readonly #uses = new Map<string, Use>();
  readonly #listeners = new Set<(id: string) => void>();
  #latestJob: Promise<unknown> = Promise.resolve();
  /** The revision of the vault when it was read last. */
  #revision = 0;

  private constructor(deps: Deps, owner: { token: string; claims: TokenClaims }) {
    this.#deps = deps;
    this.offers = new PackOffers(deps.vault);
    // The verified tokens contain the packs that their clients were offered.
    this.offers.onChange(() => this.#verified.clear());
    const digest = digestOf(owner.token);
    this.#owner = { token: owner.token, digest, verified: verifiedOf(owner.claims, digest) };
  }

  static async open(deps: Deps): Promise<TokenRegistry> {
    const tokens = new TokenRegistry(deps, ownersToken(deps.now()));
    deps.vault.onForeignChange?.(() => void tokens.#followInTurn().catch(() => undefined));
    // Read the secret now, because the memory may be locked later. If it cannot be read yet, it is read on first use.
    await tokens.#signing().catch(() => undefined);
    await tokens.offers.prepare();
    return tokens;
  }

  /**
   * Returns the running program's own token. It has all rights, works in every key state, and is valid until the program exits.
   */
  ownerToken(): string {
    return this.#owner.token;
  }

  /**
   * Returns the caller that the token identifies. Throws `invalid_token`, or `key_unavailable` while the signing secret cannot be
   * read. Stores a valid token in `sent`.
   */
  async verify(token: string, transport: string, sent?: VerifiedToken): Promise<Caller> {
    if (typeof token !== 'string' || token.length > TOKEN_CHARACTERS) {
      throw invalidToken(
        `This is not a token: it must be a text of at most ${TOKEN_CHARACTERS} characters; send the token unchanged.`,
      );
    }
    const digest = sent?.token === token ? sent.digest : digestOf(token);
    // An ordinary comparison is safe, because its timing helps only an attacker who can find a text with this digest.
    const verified = digest === this.#owner.digest ? this.#owner.verified : await this.#verifyOther(token, digest);
    if (sent && sent.token !== token) Object.assign(sent, { token, digest });
    return { ...callerOf(verified, transport), ...(digest === this.#owner.digest && { owner: true }) };
  }

  async #verifyOther(token: string, digest: string): Promise<TokenIdentity> {
    await this.#followInTurn();
    const known = this.#verified.get(digest);
    const verified = known ?? (await this.#verifyUnknown(token, digest));
    this.#requireValid(verified);
    // While the packs of the client cannot be read, the token is verified again for each request.
    if (known || this.offers.isLoaded) this.#remember(digest, verified);
    this.#recordUse(verified.id);
    return verified;
  }

  async #verifyUnknown(token: string, digest: string): Promise<TokenIdentity> {
    const verified = verifiedOf(verifyToken(token, await this.#signing()), digest);
    if (!this.offers.isLoaded) await this.offers.prepare();
    const packs = this.offers.of(verified.client);
    return packs ? { ...verified, packs } : verified;
  }

  /**
   * Creates a token. A token `of` another token, such as that of a client's hooks, is valid only while the other one is neither
   * paused nor revoked.
   */
  mint(
    { name, client, subject, scopes, days, quarantine = false }: MintInput,
    { of }: { readonly of?: string } = {},
  ): Promise<MintReceipt> {
    return this.#serialize(async () => {
      const key = await this.#signing();
      const now = this.#deps.now();
      const valid = (await this.#records()).filter(([, { expires }]) => expires > now);
      if (valid.length >= MAX_TOKENS) {
        throw new Failure('quota_exceeded', `This memory already has ${MAX_TOKENS} tokens; revoke unused tokens first.`);
      }
      const id = randomBytes(8).toString('hex');
      const iat = Math.floor(now / SECOND_MS);
      const exp = iat + (days * DAY_MS) / SECOND_MS;
      const distinctScopes = [...new Set(scopes)];
      const token = signToken(
        {
          iss: ISSUER,
          aud: AUDIENCE,
          sub: subject,
          client,
          scopes: distinctScopes,
          iat,
          exp,
          jti: id,
          ...(quarantine && { quarantine }),
          ...(of !== undefined && { of }),
        },
        key,
      );
      const record: TokenRecord = {
        name,
        client,
        subject,
        scopes: distinctScopes,
        created: iat * SECOND_MS,
        expires: exp * SECOND_MS,
        ...(quarantine && { quarantined: true }),
        ...(of !== undefined && { of }),
      };
      // Store the record before returning the token, because a token without a record could not be listed or revoked.
      await this.#save(id, record);
      return { ...summaryOf(id, record), token };
    });
  }

  list(): Promise<TokenList> {
    return this.#serialize(async () => {
      // `#signing` also loads the revocations.
      await this.#signing();
      await this.#followOthers();
      const records = (await this.#records()).toSorted(([, one], [, other]) => other.created - one.created);
      return {
        tokens: records.map(([id, record]) => {
          const used = this.#uses.get(id)?.at ?? record.used;
          return {
            ...summaryOf(id, record),
            ...(used !== undefined && { last_used_at: time(used) }),
            ...(this.#paused.has(id) && { paused: true }),
          };
        }),
      };
    });
  }

  /**
   * Returns the grants of the stored tokens of a subject. Tokens that another program signed with the same secret grant nothing
   * here, because they are known only while a client presents them (R-AUTH-05). The token of a hook grants nothing either, because a
   * hook writes no definitions.
   */
  grants(subject: string): Promise<readonly TokenGrant[]> {
    return this.#serialize(async () => {
      await this.#signing();
      await this.#followOthers();
      const now = this.#deps.now();
      return (await this.#records())
        .filter(([id, record]) => record.subject === subject && record.expires > now && !this.#paused.has(id))
        .filter(([, { scopes }]) => !isHookToken(scopes))
        .map(([token, { client, scopes, quarantined }]) => ({
          token,
          client,
          scopes: new Set(scopes),
          quarantined: quarantined === true,
        }));
    });
  }

  /**
   * Revokes a token. Works in every key state. Even if the revocation cannot be stored, the token is invalid until the program
   * exits.
   */
  async revoke({ id, unrecorded }: RevokeInput): Promise<RevokeReceipt> {
    const { vault } = this.#deps;
    const recorded = (await vault.names()).includes(TOKEN_RECORD + id);
    if (!recorded && !unrecorded && !(await vault.revokedTokens()).includes(id)) {
      throw new Failure(
        'not_found',
        'This memory created no token with this id; look up the id in the list of tokens, or send unrecorded if another program created the token.',
      );
    }
    this.#revoked.add(id);
    for (const [digest, verified] of this.#verified) if (verified.id === id) this.#verified.delete(digest);
    const written = this.#saveRevocation(id, recorded);
    for (const callback of this.#listeners) callback(id);
    await written;
    return { id };
  }

  /** Pauses or resumes a token. Pausing closes the open connections of the token, as revoking does. */
  pause({ id, paused }: PauseTokenInput): Promise<PauseReceipt> {
    return this.#serialize(async () => {
      await this.#signing();
      await this.#followOthers();
      if (!this.#recorded.has(id) || this.#revoked.has(id)) {
        throw new Failure('not_found', 'This memory created no token with this id; look up the id in the list of tokens.');
      }
      if (paused) {
        // Pause the token in RAM first, so that it is paused until the program exits, even if storing the pause fails.
        this.#paused.add(id);
        for (const callback of this.#listeners) callback(id);
        await this.#deps.vault.write(PAUSED_TOKEN + id, 'paused');
      } else {
        await this.#deps.vault.delete(PAUSED_TOKEN + id);
        this.#paused.delete(id);
      }
      return { id, paused };
    });
  }

  /** Whether a token that this memory created is neither revoked nor paused. It may have expired. */
  isUsable(id: string): boolean {
    return this.#recorded.has(id) && !this.#revoked.has(id) && !this.#paused.has(id);
  }

  /** Changes which packs a client is offered. Applies to the client's next request. */
  offerPacks(offer: PackOffer): Promise<PackOffer> {
    return this.#serialize(async () => {
      await this.#followOthers();
      return this.offers.change(offer);
    });
  }

  /** Calls `callback` whenever a token is revoked or paused, with the token's id, so that open connections can be closed. */
  onRevoked(callback: (id: string) => void): Disposable {
    // Wrap the callback, so that the same function can subscribe twice.
    const listener = (id: string): void => callback(id);
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Stores the last uses of tokens. Dispose of this object before the store. */
  async [Symbol.asyncDispose](): Promise<void> {
    const unwritten = [...this.#uses].filter(([, { at, stored }]) => at !== stored);
    for (const [id, use] of unwritten) this.#serialize(() => this.#saveUse(id, use)).catch(() => undefined);
    await this.#latestJob;
  }

  #requireValid({ id, of = id, from, until }: TokenIdentity): void {
    const now = this.#deps.now();
    if (this.#revoked.has(id) || this.#revoked.has(of))
      throw invalidToken('This token has been revoked; ask the owner of the memory for a new token.');
    if (this.#paused.has(id) || this.#paused.has(of)) {
      throw invalidToken('This token is paused; ask the owner of the memory to resume it.');
    }
    if (until <= now) throw invalidToken('This token has expired; ask the owner of the memory for a new token.');
    // Accept a recorded token: it was created here, perhaps while the clock was ahead.
    if (from > now + GRACE_MS && !this.#recorded.has(id)) {
      throw invalidToken('This token is not valid yet; wait, or correct the clocks of both machines.');
    }
  }

  #remember(digest: string, verified: TokenIdentity): void {
    this.#verified.delete(digest);
    this.#verified.set(digest, verified);
    const [oldest] = this.#verified.size > MAX_CACHED_TOKENS ? this.#verified.keys() : [];
    if (oldest !== undefined) this.#verified.delete(oldest);
  }

  /** Loads the signing key and the revocations. Tokens must not be accepted before the revocations are known. */
  #signing(): Promise<KeyObject> {
    if (this.#key) return Promise.resolve(this.#key);
    this.#loading ??= this.#read().finally(() => (this.#loading = undefined));
    return this.#loading;
  }

  async #read(): Promise<KeyObject> {
    const { vault, secret } = this.#deps;
    for (const id of await vault.revokedTokens()) this.#revoked.add(id);
    for (const name of await vault.names()) {
      if (name.startsWith(TOKEN_RECORD)) this.#recorded.add(name.slice(TOKEN_RECORD.length));
      if (name.startsWith(PAUSED_TOKEN)) this.#paused.add(name.slice(PAUSED_TOKEN.length));
    }
    this.#key = signingKey(secret ?? (await vault.read(SIGNING_SECRET)) ?? (await this.#makeSecret()));
    return this.#key;
  }

  /**
   * Creates a new secret. Also replaces a secret that cannot be decrypted. Tokens signed with the old secret become invalid, but
   * new tokens can be created.
   */
  #makeSecret(): Promise<string> {
    const secret = randomBytes(32).toString('base64url');
    return this.#deps.vault.update(SIGNING_SECRET, (known) => known ?? secret);
  }

  /** Follows other processes outside of a job. Waits for the running job, because a pause may not be in the vault yet. */
  async #followInTurn(): Promise<void> {
    const { vault } = this.#deps;
    if (vault.revision && (await vault.revision()) !== this.#revision) await this.#serialize(() => this.#followOthers());
  }

  /** Reads tokens, revocations, pauses and offered packs again after another process changed the vault. Call it in a job. */
  async #followOthers(): Promise<void> {
    const { vault } = this.#deps;
    if (!vault.revision) return;
    const revision = await vault.revision();
    if (revision === this.#revision) return;
    const [names, revoked] = await Promise.all([vault.names(), vault.revokedTokens()]);
    const idsOf = (prefix: string): string[] =>
      names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
    const paused = idsOf(PAUSED_TOKEN);
    const stopped = [...revoked.filter((id) => !this.#revoked.has(id)), ...paused.filter((id) => !this.#paused.has(id))];
    for (const id of revoked) this.#revoked.add(id);
    replaceAll(this.#paused, paused);
    replaceAll(this.#recorded, idsOf(TOKEN_RECORD));
    await this.offers.reload();
    this.#verified.clear();
    this.#revision = revision;
    for (const id of stopped) for (const callback of this.#listeners) callback(id);
  }

  #recordUse(id: string): void {
    if (!this.#recorded.has(id)) return;
    const now = this.#deps.now();
    const use = this.#uses.get(id) ?? { at: now, tried: -Infinity, stored: -Infinity };
    this.#uses.set(id, use);
    use.at = now;
    // The absolute value also handles a clock that was set back.
    if (Math.abs(now - use.tried) < USE_MS) return;
    use.tried = now;
    // If the use cannot be stored, a later use tries again.
    this.#serialize(() => this.#saveUse(id, use)).catch(() => undefined);
  }

  async #saveUse(id: string, use: Use): Promise<void> {
    const record = this.#recorded.has(id) ? await this.#record(id) : undefined;
    const { at } = use;
    if (record) await this.#save(id, { ...record, used: at });
    use.stored = at;
  }

  async #saveRevocation(id: string, recorded: boolean): Promise<void> {
    const record = await this.#record(id).catch(() => undefined);
    await this.#deps.vault.revokeToken(id, record?.expires ?? NEVER);
    if (recorded) await this.#serialize(() => this.#drop(id));
  }

  /**
   * Returns the stored token records. Skips revoked tokens, which a restored backup can contain, and deletes tokens that expired
   * long ago.
   */
  async #records(): Promise<[id: string, record: TokenRecord][]> {
    const { vault } = this.#deps;
    const old = this.#deps.doubtful() ? -Infinity : this.#deps.now() - LISTED_AFTER_EXPIRY_MS;
    const records: [string, TokenRecord][] = [];
    for (const name of await vault.names()) {
      if (!name.startsWith(TOKEN_RECORD)) continue;
      const id = name.slice(TOKEN_RECORD.length);
      const record = await this.#record(id);
      if (record && record.expires <= old) await this.#drop(id);
      else if (record && !this.#revoked.has(id) && !this.#revoked.has(record.of ?? id)) records.push([id, record]);
    }
    return records;
  }

  async #record(id: string): Promise<TokenRecord | undefined> {
    const text = await this.#deps.vault.read(TOKEN_RECORD + id);
    // This cast is safe, because decryption proves that this program wrote the record.
    return text === undefined ? undefined : (JSON.parse(text) as TokenRecord);
  }

  async #save(id: string, record: TokenRecord): Promise<void> {
    await this.#deps.vault.write(TOKEN_RECORD + id, JSON.stringify(record));
    this.#recorded.add(id);
  }

  async #drop(id: string): Promise<void> {
    this.#recorded.delete(id);
    this.#uses.delete(id);
    await this.#deps.vault.delete(TOKEN_RECORD + id);
    if (this.#paused.delete(id)) await this.#deps.vault.delete(PAUSED_TOKEN + id);
  }

  /** Runs jobs one after the other, because each job reads records before it writes them. */
  #serialize<T>(job: () => Promise<T>): Promise<T> {
    const turn = this.#latestJob.then(job);
    this.#latestJob = turn.catch(() => undefined);
    return turn;
  }
}

/** Whether a token is only for the hooks of an agent. */
const isHookToken = (scopes: readonly TokenScope[]): boolean => scopes.every((scope) => scope === 'memory:brief');

function replaceAll(set: Set<string>, values: readonly string[]): void {
  set.clear();
  for (const value of values) set.add(value);
}

const digestOf = (token: string): string => hash('sha256', token, 'base64url');

const callerOf = ({ id, subject, client, scopes, quarantined, packs }: TokenIdentity, transport: string): Caller => ({
  subject,
  client,
  transport,
  token: id,
  scopes,
  ...(quarantined && { quarantined }),
  ...(packs && { packs }),
});
