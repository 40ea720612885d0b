import { hash, type KeyObject, randomBytes } from 'node:crypto';
import type { PauseReceipt, PauseTokenInput } from '../../contract/client.ts';
import { Failure } from '../../contract/failure.ts';
import { TOKEN_DAYS } from '../../contract/limits.ts';
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
import type { Vault } from '../store/store.ts';
import { PAUSED_TOKEN, SIGNING_SECRET, TOKEN_RECORD } from '../store/vault-names.ts';
import type { Caller } from './caller.ts';
import { invalidToken, verifyToken, signingKey, signToken } from './jwt.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

/** Longer ones are refused before anybody works on them. */
const TOKEN_CHARACTERS = 8192;
/** The clocks of whoever signs and of ours need not agree to the second. */
const GRACE_MS = MINUTE;
/** A use is written down this often at most. */
const USE_MS = MINUTE;
const KEPT_AFTER_EXPIRY_MS = 30 * DAY;
const MOST_ALIVE = 200;
/** Tokens that need not be verified again. */
const MOST_VERIFIED = 256;
/** For a token whose end is not known. */
const FOR_GOOD = Number.MAX_SAFE_INTEGER;

interface Deps {
  readonly vault: Vault;
  /** The moment by which tokens expire. */
  now(): number;
  /** Whether that moment is in doubt: nothing goes for good by such a clock. */
  doubtful(): boolean;
  /** What whoever starts the program signs with; else a secret of the memory's own is kept in the vault. */
  readonly secret?: string | undefined;
}

interface Verified {
  readonly id: string;
  readonly subject: string;
  readonly client: string;
  readonly scopes: ReadonlySet<TokenScope>;
  /** Neither before nor from then on; milliseconds. */
  readonly from: number;
  readonly until: number;
}

/** What one valid token lets its client do. */
export interface TokenGrant {
  /** Its id. */
  readonly token: string;
  readonly client: string;
  readonly scopes: ReadonlySet<TokenScope>;
}

/** As the vault keeps it. */
interface TokenRecord {
  readonly name: string;
  readonly client: string;
  readonly subject: string;
  readonly scopes: readonly TokenScope[];
  readonly created: number;
  readonly expires: number;
  readonly used?: number;
}

interface Use {
  at: number;
  /** The one that was last written down, or tried to be. */
  tried: number;
  kept: number;
}

/** The token that was last found good on a connection. Whoever sends it there again knows it, and it need not be hashed anew. */
export interface VerifiedToken {
  token: string;
  digest: string;
}

/**
 * Who may come in (R-AUTH). Once the secret has been read it is held until the program ends, also while the memory is
 * locked: whoever calls then hears of the lock, and not that their token is wrong.
 */
export class TokenRegistry implements AsyncDisposable {
  readonly #deps: Deps;
  readonly #owner: { readonly token: string; readonly digest: string; readonly verified: Verified };
  #key: KeyObject | undefined;
  #asking: Promise<KeyObject> | undefined;
  /** By digest, the oldest use first: what was verified need not be held as it was sent, longer than its connection. */
  readonly #verified = new Map<string, Verified>();
  readonly #revoked = new Set<string>();
  readonly #paused = new Set<string>();
  readonly #recorded = new Set<string>();
  readonly #uses = new Map<string, Use>();
  readonly #listeners = new Set<(id: string) => void>();
  #working: Promise<unknown> = Promise.resolve();

  private constructor(deps: Deps, owner: { token: string; claims: TokenClaims }) {
    this.#deps = deps;
    const digest = digestOf(owner.token);
    this.#owner = { token: owner.token, digest, verified: verifiedOf(owner.claims, digest) };
  }

  static async open(deps: Deps): Promise<TokenRegistry> {
    const tokens = new TokenRegistry(deps, ownersToken(deps.now()));
    // What can be read now is there when the memory is locked later; what cannot is asked for again when it is needed.
    await tokens.#signing().catch(() => undefined);
    return tokens;
  }

  /** Opens everything, works in every state of the key, and ends with the program. */
  ownerToken(): string {
    return this.#owner.token;
  }

  /**
   * Who this is, or `invalid_token`. While the secret cannot be read nobody can be told from anybody: `key_unavailable`. A token that
   * is good is kept in `sent`.
   */
  async verify(token: string, transport: string, sent?: VerifiedToken): Promise<Caller> {
    if (typeof token !== 'string' || token.length > TOKEN_CHARACTERS) {
      throw invalidToken(
        `This is not a token: it must be a text of at most ${TOKEN_CHARACTERS} characters; send one as it was given to you.`,
      );
    }
    const digest = sent?.token === token ? sent.digest : digestOf(token);
    // Whoever has no text with this digest learns nothing from the time that the comparison takes.
    const verified = digest === this.#owner.digest ? this.#owner.verified : await this.#verifyOther(token, digest);
    if (sent && sent.token !== token) Object.assign(sent, { token, digest });
    return { ...callerOf(verified, transport), ...(digest === this.#owner.digest && { owner: true }) };
  }

  async #verifyOther(token: string, digest: string): Promise<Verified> {
    const verified = this.#verified.get(digest) ?? verifiedOf(verifyToken(token, await this.#signing()), digest);
    this.#requireValid(verified);
    this.#remember(digest, verified);
    this.#note(verified.id);
    return verified;
  }

  mint({ name, client, subject, scopes, days }: MintInput): Promise<MintReceipt> {
    return this.#inTurn(async () => {
      const key = await this.#signing();
      const now = this.#deps.now();
      const alive = (await this.#records()).filter(([, { expires }]) => expires > now);
      if (alive.length >= MOST_ALIVE) {
        throw new Failure('quota_exceeded', `This memory has ${MOST_ALIVE} tokens already; revoke those that nobody uses.`);
      }
      const id = randomBytes(8).toString('hex');
      const iat = Math.floor(now / SECOND);
      const exp = iat + (days * DAY) / SECOND;
      const own = [...new Set(scopes)];
      const token = signToken({ iss: ISSUER, aud: AUDIENCE, sub: subject, client, scopes: own, iat, exp, jti: id }, key);
      const record: TokenRecord = { name, client, subject, scopes: own, created: iat * SECOND, expires: exp * SECOND };
      // Whoever holds it before it is recorded could not be found in the list.
      await this.#keep(id, record);
      return { ...told(id, record), token };
    });
  }

  list(): Promise<TokenList> {
    return this.#inTurn(async () => {
      // Without it, it is not known who was revoked.
      await this.#signing();
      const records = (await this.#records()).toSorted(([, one], [, other]) => other.created - one.created);
      return {
        tokens: records.map(([id, record]) => {
          const used = this.#uses.get(id)?.at ?? record.used;
          return {
            ...told(id, record),
            ...(used !== undefined && { last_used_at: time(used) }),
            ...(this.#paused.has(id) && { paused: true }),
          };
        }),
      };
    });
  }

  /**
   * What the clients of a subject may do now, by their tokens on record. A token that was made elsewhere with the same secret is
   * known only while it is presented (R-AUTH-05), so it grants nothing here.
   */
  grants(subject: string): Promise<readonly TokenGrant[]> {
    return this.#inTurn(async () => {
      await this.#signing();
      const now = this.#deps.now();
      return (await this.#records())
        .filter(([id, record]) => record.subject === subject && record.expires > now && !this.#paused.has(id))
        .map(([token, { client, scopes }]) => ({ token, client, scopes: new Set(scopes) }));
    });
  }

  /** Works in every state of the key. When it fails, the token is of no use in this run all the same. */
  async revoke({ id, unrecorded }: RevokeInput): Promise<RevokeReceipt> {
    const { vault } = this.#deps;
    const recorded = (await vault.names()).includes(TOKEN_RECORD + id);
    if (!recorded && !unrecorded && !(await vault.revokedTokens()).includes(id)) {
      throw new Failure(
        'not_found',
        'No token with this id was made here; look it up in the list, or say that it is unrecorded if it was made elsewhere.',
      );
    }
    this.#revoked.add(id);
    for (const [digest, verified] of this.#verified) if (verified.id === id) this.#verified.delete(digest);
    const written = this.#keepRevocation(id, recorded);
    for (const hear of this.#listeners) hear(id);
    await written;
    return { id };
  }

  /** Refuses it, or lets it in again. What it opened ends as when it is revoked. */
  pause({ id, paused }: PauseTokenInput): Promise<PauseReceipt> {
    return this.#inTurn(async () => {
      await this.#signing();
      if (!this.#recorded.has(id) || this.#revoked.has(id)) {
        throw new Failure('not_found', 'No token with this id was made here; look it up in the list.');
      }
      if (paused) {
        // First, so that it holds in this run also when it cannot be written down.
        this.#paused.add(id);
        for (const hear of this.#listeners) hear(id);
        await this.#deps.vault.write(PAUSED_TOKEN + id, 'paused');
      } else {
        await this.#deps.vault.delete(PAUSED_TOKEN + id);
        this.#paused.delete(id);
      }
      return { id, paused };
    });
  }

  /** Hears the id of every token that is revoked or paused, at once: what it opened and still holds open has to end. */
  onRevoked(hear: (id: string) => void): Disposable {
    // The same function handed in twice is two listeners.
    const listener = (id: string): void => hear(id);
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Writes down what was used last. Close it before the store. */
  async [Symbol.asyncDispose](): Promise<void> {
    const unwritten = [...this.#uses].filter(([, { at, kept }]) => at !== kept);
    for (const [id, use] of unwritten) this.#inTurn(() => this.#keepUse(id, use)).catch(() => undefined);
    await this.#working;
  }

  #requireValid({ id, from, until }: Verified): void {
    const now = this.#deps.now();
    if (this.#revoked.has(id)) throw invalidToken('This token has been revoked; ask the owner of the memory for a new one.');
    if (this.#paused.has(id)) {
      throw invalidToken('This token is paused; ask the owner of the memory to let it in again.');
    }
    if (until <= now) throw invalidToken('This token has expired; ask the owner of the memory for a new one.');
    // One that was recorded here was made here, maybe by a clock that was ahead.
    if (from > now + GRACE_MS && !this.#recorded.has(id)) {
      throw invalidToken('This token is not valid yet; wait, or set the clocks of both machines right.');
    }
  }

  #remember(digest: string, verified: Verified): void {
    this.#verified.delete(digest);
    this.#verified.set(digest, verified);
    const [oldest] = this.#verified.size > MOST_VERIFIED ? this.#verified.keys() : [];
    if (oldest !== undefined) this.#verified.delete(oldest);
  }

  /** The key, and with it who was revoked: without that nobody may be let in. */
  #signing(): Promise<KeyObject> {
    if (this.#key) return Promise.resolve(this.#key);
    this.#asking ??= this.#read().finally(() => (this.#asking = undefined));
    return this.#asking;
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

  /** Also in the place of one whose seal is broken: what it signed is lost, and nobody could get a new token else. */
  async #makeSecret(): Promise<string> {
    const secret = randomBytes(32).toString('base64url');
    await this.#deps.vault.write(SIGNING_SECRET, secret);
    return secret;
  }

  /** Nobody waits for this. */
  #note(id: string): void {
    if (!this.#recorded.has(id)) return;
    const now = this.#deps.now();
    const use = this.#uses.get(id) ?? { at: now, tried: -Infinity, kept: -Infinity };
    this.#uses.set(id, use);
    use.at = now;
    // A clock that was set back is no reason to wait until it is that late again.
    if (Math.abs(now - use.tried) < USE_MS) return;
    use.tried = now;
    // While it cannot be written the next use tries again.
    this.#inTurn(() => this.#keepUse(id, use)).catch(() => undefined);
  }

  async #keepUse(id: string, use: Use): Promise<void> {
    const record = this.#recorded.has(id) ? await this.#record(id) : undefined;
    const { at } = use;
    if (record) await this.#keep(id, { ...record, used: at });
    use.kept = at;
  }

  async #keepRevocation(id: string, recorded: boolean): Promise<void> {
    const record = await this.#record(id).catch(() => undefined);
    await this.#deps.vault.revokeToken(id, record?.expires ?? FOR_GOOD);
    if (recorded) await this.#inTurn(() => this.#drop(id));
  }

  /** Those that count: a restored backup may hold records of what was revoked since. What expired long ago goes. */
  async #records(): Promise<[id: string, record: TokenRecord][]> {
    const { vault } = this.#deps;
    const old = this.#deps.doubtful() ? -Infinity : this.#deps.now() - KEPT_AFTER_EXPIRY_MS;
    const records: [string, TokenRecord][] = [];
    for (const name of await vault.names()) {
      if (!name.startsWith(TOKEN_RECORD)) continue;
      const id = name.slice(TOKEN_RECORD.length);
      const record = await this.#record(id);
      if (record && record.expires <= old) await this.#drop(id);
      else if (record && !this.#revoked.has(id)) records.push([id, record]);
    }
    return records;
  }

  async #record(id: string): Promise<TokenRecord | undefined> {
    const text = await this.#deps.vault.read(TOKEN_RECORD + id);
    // Nobody but us could have sealed it.
    return text === undefined ? undefined : (JSON.parse(text) as TokenRecord);
  }

  async #keep(id: string, record: TokenRecord): Promise<void> {
    await this.#deps.vault.write(TOKEN_RECORD + id, JSON.stringify(record));
    this.#recorded.add(id);
  }

  async #drop(id: string): Promise<void> {
    this.#recorded.delete(id);
    this.#uses.delete(id);
    await this.#deps.vault.delete(TOKEN_RECORD + id);
    if (this.#paused.delete(id)) await this.#deps.vault.delete(PAUSED_TOKEN + id);
  }

  /** Records are read before they are written: two at once would undo each other. */
  #inTurn<T>(job: () => Promise<T>): Promise<T> {
    const turn = this.#working.then(job);
    this.#working = turn.catch(() => undefined);
    return turn;
  }
}

const digestOf = (token: string): string => hash('sha256', token, 'base64url');

function ownersToken(now: number): { token: string; claims: TokenClaims } {
  const iat = Math.floor(now / SECOND);
  const claims: TokenClaims = {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'me',
    client: 'command-line',
    scopes: ['admin'],
    iat,
    // The program ends before.
    exp: iat + (100 * TOKEN_DAYS * DAY) / SECOND,
    jti: randomBytes(8).toString('hex'),
  };
  return { token: signToken(claims, signingKey(randomBytes(32).toString('base64url'))), claims };
}

function verifiedOf({ sub, client, scopes, exp, nbf = -Infinity, iat = -Infinity, jti }: TokenClaims, digest: string): Verified {
  return {
    // One that brings no id is told from others, and revoked, by what it is.
    id: jti ?? `sha256-${digest.slice(0, 22)}`,
    subject: sub,
    client,
    scopes: new Set(scopes),
    from: Math.max(nbf, iat) * SECOND,
    until: exp * SECOND,
  };
}

const callerOf = ({ id, subject, client, scopes }: Verified, transport: string): Caller => ({
  subject,
  client,
  transport,
  token: id,
  scopes,
});

const time = (moment: number): string => new Date(moment).toISOString();

const told = (id: string, { name, client, subject, scopes, created, expires }: TokenRecord): Omit<MintReceipt, 'token'> => ({
  id,
  name,
  client,
  subject,
  scopes: [...scopes],
  created_at: time(created),
  expires_at: time(expires),
});
