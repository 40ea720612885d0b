import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { Failure } from '../../contract/failure.ts';
import { writeDurableFile } from '../../core/file/files.ts';
import { readPrivateFile } from '../../listeners/private-file.ts';

const Entry = z.object({ command: z.string(), args: z.array(z.string()), env: z.record(z.string(), z.string()) });

const Record = z.object({
  subject: z.string(),
  /** The id of the token. */
  token: z.string(),
  at: z.number(),
  entry: Entry,
  files: z.array(
    z.object({
      path: z.string(),
      /** Digest of what we left there; absent while we have not come so far. */
      after: z.string().exactOptional(),
      /** Of what was there before; its bytes lie beside this record unless there was no file. */
      before: z.string(),
      /** While a token stands in it: what it was before others were kept from reading it. */
      mode: z.int().exactOptional(),
    }),
  ),
  /** Folders that were not there, the outermost first. */
  folders: z.array(z.string()),
});
export type Record = z.output<typeof Record>;

/** What was done for each client, and what it takes to put it back: in the data folder, for the owner's eyes alone. */
export class Records {
  readonly #folder: string;

  constructor(dataFolder: string) {
    this.#folder = join(dataFolder, 'clients');
  }

  /** Where the bridge looks for it. */
  tokenFile(client: string): string {
    return join(this.#folder, `${client}.token`);
  }

  token(client: string): string | undefined {
    return this.#read(this.tokenFile(client))?.trim();
  }

  keepToken(client: string, token: string | undefined): void {
    this.#prepare();
    if (token === undefined) rmSync(this.tokenFile(client), { force: true });
    else writeDurableFile(this.tokenFile(client), `${token}\n`);
  }

  /** Of the token that is kept; undefined where there is none, or none of ours. */
  tokenId(client: string): string | undefined {
    const [, claims = ''] = this.token(client)?.split('.') ?? [];
    try {
      const { jti } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { jti?: unknown };
      return typeof jti === 'string' ? jti : undefined;
    } catch {
      return undefined;
    }
  }

  /** One that its owner had kept for this client comes back when the connection is dropped. */
  setTokenAside(client: string): void {
    if (existsSync(this.tokenFile(client))) renameSync(this.tokenFile(client), this.#ownTokenFile(client));
  }

  read(client: string): Record | undefined {
    const text = this.#read(this.#file(client));
    if (text === undefined) return undefined;
    try {
      return Record.parse(JSON.parse(text));
    } catch (cause) {
      throw new Failure(
        'unavailable',
        `What is kept of this client's connection cannot be read; delete clients/${client}.json in the data folder, and connect it again.`,
        { cause },
      );
    }
  }

  keep(client: string, record: Record): void {
    this.#prepare();
    writeDurableFile(this.#file(client), JSON.stringify(record, undefined, 2));
  }

  /** What a file held, by its digest. */
  keepBytes(client: string, digest: string, bytes: Buffer): void {
    this.#prepare();
    writeDurableFile(this.#bytesFile(client, digest), bytes.toString('base64'));
  }

  bytes(client: string, digest: string): Buffer | undefined {
    const text = this.#read(this.#bytesFile(client, digest));
    return text === undefined ? undefined : Buffer.from(text, 'base64');
  }

  /** All but the bytes that the record still names. */
  tidy(client: string, record: Record): void {
    const named = new Set(record.files.map(({ before }) => this.#bytesFile(client, before)));
    for (const path of this.#kept(client)) if (!named.has(path)) rmSync(path, { force: true });
  }

  drop(client: string): void {
    for (const path of this.#kept(client)) rmSync(path, { force: true });
    rmSync(this.tokenFile(client), { force: true });
    if (existsSync(this.#ownTokenFile(client))) renameSync(this.#ownTokenFile(client), this.tokenFile(client));
    rmSync(this.#file(client), { force: true });
  }

  #ownTokenFile(client: string): string {
    return `${this.tokenFile(client)}.own`;
  }

  #read(path: string): string | undefined {
    try {
      return readPrivateFile(path);
    } catch (cause) {
      throw new Failure(
        'unavailable',
        `What is kept in ${path} must be a file that only you can read; run chmod 600 on it, and try again.`,
        { cause },
      );
    }
  }

  #kept(client: string): string[] {
    if (!existsSync(this.#folder)) return [];
    const mine = readdirSync(this.#folder).filter((name) => name.startsWith(`${client}.`) && name.endsWith('.before'));
    return mine.map((name) => join(this.#folder, name));
  }

  #prepare(): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
  }

  #file(client: string): string {
    return join(this.#folder, `${client}.json`);
  }

  #bytesFile(client: string, digest: string): string {
    return join(this.#folder, `${client}.${digest.slice(0, 32)}.before`);
  }
}
