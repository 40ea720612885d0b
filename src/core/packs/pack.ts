import type * as z from 'zod';
import type { PackResult } from '../../contract/pack.ts';
import type { Caller } from '../access/caller.ts';
import type { CallContext } from '../operations/call-context.ts';

/** The ways in which a pack uses memory. All of them are off by default. */
interface MemoryOptions {
  /** If true, outputs are cached and returned for equal inputs. */
  readonly cache?: true;
  /** Returns true if this input must run the handler, without the cache and without sharing the run of another caller. */
  readonly bypassesCache?: (input: unknown) => boolean;
  /** If true, the last output of each input is also stored in the pack's own memory, under `captured/`. */
  readonly capture?: true;
  /** Lifetime of cached outputs, in seconds. This is also the default lifetime of the entries that the pack stores. */
  readonly ttl?: number;
  readonly category?: string;
}

interface StoreOptions {
  /** Lifetime in seconds, at most a year. Defaults to the pack's `ttl`, or to 90 days. */
  readonly ttl?: number;
  readonly category?: string;
  readonly tags?: readonly string[];
}

export interface PackMemoryEntry {
  readonly key: string;
  readonly value: unknown;
  readonly category: string;
  readonly tags: readonly string[];
  readonly updated_at: string;
  readonly expires_at: string;
}

/** A pack's own storage for one caller and session. Other packs cannot access it. */
export interface PackMemory {
  /** The name of the storage: `subject`, or `subject:session`. */
  readonly namespace: string;
  store(key: string, value: unknown, options?: StoreOptions): Promise<void>;
  recall(key: string): Promise<PackMemoryEntry | undefined>;
  /** Returns the entries whose key starts with the prefix, newest first. */
  list(prefix?: string): Promise<readonly Omit<PackMemoryEntry, 'value'>[]>;
  delete(key: string): Promise<boolean>;
  /** Returns the newest entries, grouped by category: at most 50 entries and 32 kB. */
  context(): Promise<{ readonly categories: readonly { readonly name: string; readonly entries: readonly PackMemoryEntry[] }[] }>;
}

/** One of the owner's secrets. The id distinguishes secrets without revealing anything about their text. */
export interface Credential {
  readonly id: string;
  readonly secret: string;
  /**
   * True if the secret was replaced, deleted or rejected after this object was read. Outputs of runs that still use the secret
   * are then not cached.
   */
  readonly revoked?: boolean;
  /** Call this when the service rejects the secret. It deletes the outputs that were cached with the secret. */
  readonly reportRejected?: () => Promise<void>;
}

/** A file that a run produced besides its output, such as a picture. */
export type Artifact = NonNullable<PackResult['artifacts']>[number];

export interface ArtifactStore {
  put(name: string, mediaType: string, body: Uint8Array): Promise<Artifact>;
}

/**
 * The context that a handler receives. A handler can reach the outside world only through this context, or through objects that
 * its creator passed to it.
 */
export interface ExecutionContext<Input = unknown> {
  /** The input, as parsed by the pack's schema. */
  readonly input: Input;
  readonly caller: Caller;
  readonly session?: string;
  /** Aborted when the caller cancels, or when the time limit is reached. */
  readonly signal: AbortSignal;
  /** The pack's storage for this caller and session. Undefined while the store is unavailable. */
  readonly memory?: PackMemory;
  /** Storage for files. Undefined unless a hook provides the storage; no built-in hook does. */
  readonly artifacts?: ArtifactStore;
  /** The credential that the pack names. Undefined if the owner has not set it. */
  readonly credential?: Credential;
  /** Passed to nested operations, so that cancellation and questions for consent work there too. */
  readonly callContext: CallContext;
  readonly progress: (done: number, of?: number, saying?: string) => void;
  readonly log: (text: string) => void;
  /** Marks the output as private or short-lived, so that the output is not cached. */
  readonly doNotCache: () => void;
}

interface PackProperties {
  /** The group and name of the pack, such as `github.list_issues`. */
  readonly name: string;
  /** The version of the pack. A cached output is returned only for the same version. */
  readonly version: string;
  readonly title: string;
  /** Text that tells a model when to use the pack, and when not. */
  readonly description: string;
  readonly memory?: MemoryOptions;
  readonly credential?: string;
  /** Time limit of a run in seconds; 30 by default. */
  readonly seconds?: number;
  /** Phrases with which users might request the pack, for the pack `route`. */
  readonly intents?: readonly string[];
  /** Whether the pack adds or destroys data outside its own memory. */
  readonly changes?: 'nothing' | 'adds' | 'destroys';
  readonly usesNetwork?: boolean;
  /** True if runs of the pack are not recorded in the audit, as for the memory packs and `route`. */
  readonly unaudited?: true;
  /** Set for packs that the owner wrote. A cached output is returned only for the same revision. */
  readonly own?: { readonly revision: string; readonly hosts?: readonly string[] };
  /** True if the owner has not turned the pack on. Agents do not see such a pack. */
  readonly off?: boolean;
  /** Returns why the pack cannot run now and what the owner can do, or undefined if the pack can run. */
  readonly unavailable?: () => string | undefined;
}

export interface Pack extends PackProperties {
  readonly input: z.ZodType;
  readonly output: z.ZodType;
  readonly handler: (context: ExecutionContext) => Promise<unknown>;
}

interface TypedPack<Input extends z.ZodType, Output extends z.ZodType> extends PackProperties {
  readonly input: Input;
  readonly output: Output;
  readonly handler: (context: ExecutionContext<z.output<Input>>) => Promise<z.input<Output>>;
}

/** Defines a pack. The compiler checks the handler against the pack's schemas. */
export const definePack = <Input extends z.ZodType, Output extends z.ZodType>(pack: TypedPack<Input, Output>): Pack =>
  // This cast is safe, because the engine passes only parsed input to the handler.
  pack as TypedPack<Input, Output> & { readonly handler: Pack['handler'] };

/** Returns the name of the pack's MCP tool. Tool names contain no dots, and built-in packs lose the prefix `helmdeck.`. */
export const toolNameOf = ({ name }: Pick<Pack, 'name'>): string => name.replace(/^helmdeck\./, '').replaceAll('.', '_');
