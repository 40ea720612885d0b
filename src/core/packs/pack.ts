import type * as z from 'zod';
import type { PackResult } from '../../contract/pack.ts';
import type { Caller } from '../access/caller.ts';
import type { CallContext } from '../operations/call-context.ts';

/** What a pack uses memory for. Everything is off by default. */
interface MemoryOptions {
  /** Cache outputs and return them for equal inputs. */
  readonly cache?: true;
  /** Whether this input must run the handler, without the cache and without sharing another caller's run. */
  readonly bypassesCache?: (input: unknown) => boolean;
  /** Also store the last output of each input in the pack's own memory, under `captured/`. */
  readonly capture?: true;
  /** Lifetime of cached outputs in seconds. Also the default lifetime of the entries the pack stores. */
  readonly ttl?: number;
  /** Default category of the entries the pack stores. */
  readonly category?: string;
}

interface StoreOptions {
  /** Seconds, at most a year. Defaults to the pack's `ttl`, or 90 days. */
  readonly ttl?: number;
  readonly category?: string;
  readonly tags?: readonly string[];
}

/** An entry in a pack's memory. */
export interface PackMemoryEntry {
  readonly key: string;
  /** The stored JSON value. */
  readonly value: unknown;
  readonly category: string;
  readonly tags: readonly string[];
  readonly updated_at: string;
  readonly expires_at: string;
}

/** A pack's own storage, bound to the caller and session. Other packs cannot access it. */
export interface PackMemory {
  /** `subject`, or `subject:session`. */
  readonly namespace: string;
  store(key: string, value: unknown, options?: StoreOptions): Promise<void>;
  recall(key: string): Promise<PackMemoryEntry | undefined>;
  /** Entries whose key starts with the prefix, newest first. */
  list(prefix?: string): Promise<readonly Omit<PackMemoryEntry, 'value'>[]>;
  /** Whether an entry was deleted. */
  delete(key: string): Promise<boolean>;
  /** The newest entries, grouped by category: at most 50 entries and 32 kB. */
  context(): Promise<{ readonly categories: readonly { readonly name: string; readonly entries: readonly PackMemoryEntry[] }[] }>;
}

/** One of the owner's secrets. The id distinguishes secrets without revealing anything about them. */
export interface Credential {
  readonly id: string;
  readonly secret: string;
  /** Replaced, deleted or rejected since it was read. Outputs obtained with it are no longer cached. */
  readonly revoked?: boolean;
  /** Call when the service rejects the secret. Outputs cached with it are deleted. */
  readonly reportRejected?: () => Promise<void>;
}

/** A file that a run produced besides its output, such as a picture. */
export type Artifact = NonNullable<PackResult['artifacts']>[number];

export interface ArtifactStore {
  put(name: string, mediaType: string, body: Uint8Array): Promise<Artifact>;
}

/** What a handler receives. A handler reaches the outside world only through this context or what its creator passed to it. */
export interface ExecutionContext<Input = unknown> {
  /** The input, parsed by the pack's schema. */
  readonly input: Input;
  readonly caller: Caller;
  readonly session?: string;
  /** Aborted when the caller cancels or the time is up. */
  readonly signal: AbortSignal;
  /** Bound to the caller, the session and this pack. Undefined while the store is unavailable. */
  readonly memory?: PackMemory;
  /** Undefined unless a hook provides it; the program itself has none. */
  readonly artifacts?: ArtifactStore;
  /** The credential that the pack names, if the owner has set one. */
  readonly credential?: Credential;
  /** Passed to nested operations, so that cancellation and consent reach them. */
  readonly callContext: CallContext;
  readonly progress: (done: number, of?: number, saying?: string) => void;
  readonly log: (text: string) => void;
  /** Marks the output as private or short-lived, so that it is not cached. */
  readonly doNotCache: () => void;
}

interface Described {
  /** Group and name, such as `github.list_issues`. */
  readonly name: string;
  /** Cached outputs are only returned for the same version. */
  readonly version: string;
  readonly title: string;
  /** For a model: when to use the pack, and when not. */
  readonly description: string;
  readonly memory?: MemoryOptions;
  /** The name of the credential the pack uses. */
  readonly credential?: string;
  /** Time limit in seconds; 30 by default. */
  readonly seconds?: number;
  /** Phrases a user might say; used by `route`. */
  readonly intents?: readonly string[];
  /** What the pack changes outside its own memory. */
  readonly changes?: 'nothing' | 'adds' | 'destroys';
  /** Whether the pack contacts other machines. */
  readonly usesNetwork?: boolean;
  /** The memory packs and `route` write no audit rows. */
  readonly unaudited?: true;
  /** Set for the owner's own packs. Cached outputs are only returned for the same revision. */
  readonly own?: { readonly revision: string; readonly hosts?: readonly string[] };
  /** The owner has not turned the pack on, so agents do not see it. */
  readonly off?: boolean;
  /** Why the pack cannot run now, and what the owner can do. */
  readonly unavailable?: () => string | undefined;
}

export interface Pack extends Described {
  readonly input: z.ZodType;
  readonly output: z.ZodType;
  readonly handler: (context: ExecutionContext) => Promise<unknown>;
}

interface Typed<Input extends z.ZodType, Output extends z.ZodType> extends Described {
  readonly input: Input;
  readonly output: Output;
  readonly handler: (context: ExecutionContext<z.output<Input>>) => Promise<z.input<Output>>;
}

/** Type-checks a handler against its schemas. */
export const definePack = <Input extends z.ZodType, Output extends z.ZodType>(pack: Typed<Input, Output>): Pack =>
  // Safe: the engine passes only parsed input.
  pack as Typed<Input, Output> & { readonly handler: Pack['handler'] };

/** Tool names have no dots. Our own packs drop the `helmdeck.` prefix. */
export const toolNameOf = ({ name }: Pick<Pack, 'name'>): string => name.replace(/^helmdeck\./, '').replaceAll('.', '_');
