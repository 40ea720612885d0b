import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { Failure } from '../../contract/failure.ts';
import { writeDurableFile } from '../../core/file/files.ts';
import { readPrivateFile } from '../../listeners/private-file.ts';
import type { TeamServer } from './team-server.ts';

const Entry = z.object({ command: z.string(), args: z.array(z.string()), env: z.record(z.string(), z.string()) });

const Record = z.object({
  subject: z.string(),
  /** Id of the client's token. */
  token: z.string(),
  /** Id of the token of the client's hooks. Absent if there are no hooks, or if the client uses a server's token. */
  hook_token: z.string().exactOptional(),
  /** Commands of the hooks, by event. Absent if an earlier version, which used no hooks, connected the client. */
  hooks: z.object({ session: z.string().exactOptional(), prompt: z.string().exactOptional() }).exactOptional(),
  at: z.number(),
  entry: Entry,
  files: z.array(
    z.object({
      path: z.string(),
      /** Digest of the file after the client was connected. Absent until then. */
      after: z.string().exactOptional(),
      /** Digest of the original file. If the file existed, its bytes are stored next to this record. */
      before: z.string(),
      /** Original mode of the file. Set only if access to the file was restricted because it contains the token. */
      mode: z.int().exactOptional(),
    }),
  ),
  /** URL of the server, if the client is connected to a server on another machine. The token is then not one of this memory. */
  server: z.string().exactOptional(),
  /** Paths of the folders that were created for the client's files, outermost first. */
  folders: z.array(z.string()),
});
export type Record = z.output<typeof Record>;

/** The tokens in a client's files. */
interface ClientTokens {
  readonly main: string | undefined;
  readonly hook: string | undefined;
}

/**
 * Stores for each client which files were changed and how to restore them. The records are in the data folder. Only the folder's
 * owner can read the records.
 */
export class Records {
  readonly #folder: string;

  constructor(dataFolder: string) {
    this.#folder = join(dataFolder, 'clients');
  }

  /** Returns the path of the file from which the bridge reads the token. */
  tokenFile(client: string): string {
    return join(this.#folder, `${client}.token`);
  }

  /** Returns the path of the file from which the hook reads its token. */
  hookTokenFile(client: string): string {
    return join(this.#folder, `${client}.hook.token`);
  }

  tokens(client: string): ClientTokens {
    return { main: this.token(client), hook: this.#read(this.hookTokenFile(client))?.trim() };
  }

  token(client: string): string | undefined {
    return this.#read(this.tokenFile(client))?.trim();
  }

  saveTokens(client: string, { main, hook }: ClientTokens): void {
    this.#prepare();
    for (const [path, token] of [
      [this.tokenFile(client), main],
      [this.hookTokenFile(client), hook],
    ] as const) {
      if (token === undefined) rmSync(path, { force: true });
      else writeDurableFile(path, `${token}\n`);
    }
  }

  /** Stores the server to which the bridge connects, or deletes it, so that the bridge connects to the program on this machine. */
  saveServer(client: string, server: TeamServer | undefined): void {
    this.#prepare();
    if (server === undefined) rmSync(this.#serverFile(client), { force: true });
    else writeDurableFile(this.#serverFile(client), `${JSON.stringify(server)}\n`);
  }

  server(client: string): TeamServer | undefined {
    const text = this.#read(this.#serverFile(client));
    return text === undefined ? undefined : (JSON.parse(text) as TeamServer);
  }

  /** Returns the id of the stored token. Returns undefined if there is no token, or if the token contains no id. */
  tokenId(client: string): string | undefined {
    const { jti } = this.#claims(client);
    return typeof jti === 'string' ? jti : undefined;
  }

  /** Whether the stored token has expired. Only the memory that issued the token knows whether it was revoked. */
  hasExpired(client: string, now: number): boolean {
    const { exp } = this.#claims(client);
    return typeof exp === 'number' && exp * 1000 <= now;
  }

  #claims(client: string): { readonly jti?: unknown; readonly exp?: unknown } {
    const [, claims = ''] = this.token(client)?.split('.') ?? [];
    try {
      return Object(JSON.parse(Buffer.from(claims, 'base64url').toString())) as object;
    } catch {
      return {};
    }
  }

  /** Renames a token file that the owner created by hand, so that it is not overwritten. `drop` reverses the renaming. */
  backUpOwnToken(client: string): void {
    if (existsSync(this.tokenFile(client))) renameSync(this.tokenFile(client), this.#ownTokenFile(client));
  }

  read(client: string): Record | undefined {
    const text = this.#read(this.#file(client));
    if (text === undefined) return undefined;
    try {
      return Record.parse(JSON.parse(text));
    } catch (cause) {
      throw new Failure(
        'invalid_config',
        `The stored record of this client's connection cannot be read. Delete clients/${client}.json in the data folder and connect the client again.`,
        { cause },
      );
    }
  }

  save(client: string, record: Record): void {
    this.#prepare();
    writeDurableFile(this.#file(client), JSON.stringify(record, undefined, 2));
  }

  /** Stores the original bytes of a file under their digest. */
  saveOriginal(client: string, digest: string, bytes: Buffer): void {
    this.#prepare();
    writeDurableFile(this.#originalFile(client, digest), bytes.toString('base64'));
  }

  original(client: string, digest: string): Buffer | undefined {
    const text = this.#read(this.#originalFile(client, digest));
    return text === undefined ? undefined : Buffer.from(text, 'base64');
  }

  /** Deletes stored originals that the record no longer refers to. */
  deleteUnused(client: string, record: Record): void {
    const used = new Set(record.files.map(({ before }) => this.#originalFile(client, before)));
    for (const path of this.#originals(client)) if (!used.has(path)) rmSync(path, { force: true });
  }

  drop(client: string): void {
    for (const path of this.#originals(client)) rmSync(path, { force: true });
    rmSync(this.tokenFile(client), { force: true });
    rmSync(this.hookTokenFile(client), { force: true });
    rmSync(this.#serverFile(client), { force: true });
    if (existsSync(this.#ownTokenFile(client))) renameSync(this.#ownTokenFile(client), this.tokenFile(client));
    rmSync(this.#file(client), { force: true });
  }

  /** The bridge and the plugin of OpenClaw read this file next to the token file. */
  #serverFile(client: string): string {
    return join(this.#folder, `${client}.server.json`);
  }

  #ownTokenFile(client: string): string {
    return `${this.tokenFile(client)}.own`;
  }

  #read(path: string): string | undefined {
    try {
      return readPrivateFile(path);
    } catch (cause) {
      throw new Failure(
        'invalid_config',
        `${path} must be a file that only you can read. Run chmod 600 on the file and try again.`,
        { cause },
      );
    }
  }

  #originals(client: string): string[] {
    if (!existsSync(this.#folder)) return [];
    const names = readdirSync(this.#folder).filter((name) => name.startsWith(`${client}.`) && name.endsWith('.before'));
    return names.map((name) => join(this.#folder, name));
  }

  #prepare(): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
  }

  #file(client: string): string {
    return join(this.#folder, `${client}.json`);
  }

  #originalFile(client: string, digest: string): string {
    return join(this.#folder, `${client}.${digest.slice(0, 32)}.before`);
  }
}
