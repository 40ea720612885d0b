import type * as z from 'zod';
import type { PackResult } from '../../contract/pack.ts';
import type { Caller } from '../access/caller.ts';
import type { CallContext } from '../operations/call-context.ts';

/** What a pack wants from memory. Nothing of it happens unless it is asked for here. */
interface MemoryOptions {
  /** Keep answers, and give them again to the same question. */
  readonly cache?: true;
  /** Whether this question wants an answer of its own, that is neither given again nor waited for by others. */
  readonly bypassesCache?: (input: unknown) => boolean;
  /** Keep each answer in the pack's own memory too, under `captured/`: the last one for each question. */
  readonly capture?: true;
  /** How long an answer is kept, in seconds; also the lifetime of what the pack stores, unless it says otherwise. */
  readonly ttl?: number;
  /** Of what the pack stores, unless it says otherwise. */
  readonly category?: string;
}

interface StoreOptions {
  /** Seconds, up to a year; 90 days unless the pack or this says otherwise. */
  readonly ttl?: number;
  readonly category?: string;
  readonly tags?: readonly string[];
}

/** What a pack remembered. */
export interface PackMemoryEntry {
  readonly key: string;
  /** As it was stored: anything that JSON can hold. */
  readonly value: unknown;
  readonly category: string;
  readonly tags: readonly string[];
  readonly updated_at: string;
  readonly expires_at: string;
}

/** A pack's own memory: of this caller, of this session if there is one, and of no other pack. */
export interface PackMemory {
  /** Whose: `subject`, or `subject:session`. */
  readonly namespace: string;
  store(key: string, value: unknown, options?: StoreOptions): Promise<void>;
  recall(key: string): Promise<PackMemoryEntry | undefined>;
  /** Those whose key begins so, newest first. */
  list(prefix?: string): Promise<readonly Omit<PackMemoryEntry, 'value'>[]>;
  /** Whether there was something to forget. */
  delete(key: string): Promise<boolean>;
  /** The newest, by category, to begin with; at most 50 and 32 kB. */
  context(): Promise<{ readonly categories: readonly { readonly name: string; readonly entries: readonly PackMemoryEntry[] }[] }>;
}

/** A secret of the owner's. Its id tells it from every other and says nothing about it. */
export interface Credential {
  readonly id: string;
  readonly secret: string;
  /** Replaced, removed or refused since it was read: no answer that it opened is kept any more. */
  readonly revoked?: boolean;
  /** To be called when its service refuses it: what was kept with it is forgotten. */
  readonly reportRejected?: () => Promise<void>;
}

/** Something that a run made beside its answer, such as a picture, as its caller is told of it. */
export type Artifact = NonNullable<PackResult['artifacts']>[number];

/** Where such things are put. */
export interface ArtifactStore {
  put(name: string, mediaType: string, body: Uint8Array): Promise<Artifact>;
}

/** What a handler is given. Everything it may do to the world outside itself goes through here or through what its maker handed it. */
export interface ExecutionContext<Input = unknown> {
  /** As the pack's own schema understood it. */
  readonly input: Input;
  readonly caller: Caller;
  readonly session?: string;
  /** Aborted when the caller gives up or the time is over. */
  readonly signal: AbortSignal;
  /** Bound to the caller, the session and this pack; undefined while no store can be used. */
  readonly memory?: PackMemory;
  /** Undefined unless a hook gave a place for them: this program has none of its own. */
  readonly artifacts?: ArtifactStore;
  /** Of the kind that the pack named, if its owner has given one. */
  readonly credential?: Credential;
  /** A pack that calls `perform` hands this on, so that giving up and the owner's consent reach the nested call. */
  readonly callContext: CallContext;
  readonly progress: (done: number, of?: number, saying?: string) => void;
  readonly log: (text: string) => void;
  /** This answer is for this once: private, or bound to a moment. */
  readonly doNotCache: () => void;
}

interface Described {
  /** Group and name: `github.list_issues`. */
  readonly name: string;
  /** Answers of another version are never given for this one's. */
  readonly version: string;
  readonly title: string;
  /** For a model: when to use it, and when not. */
  readonly description: string;
  readonly memory?: MemoryOptions;
  /** Which of the owner's credentials it uses. */
  readonly credential?: string;
  /** Seconds after which a run ends; 30 unless said. */
  readonly seconds?: number;
  /** What people say who need it; `route` looks here. */
  readonly intents?: readonly string[];
  /** Whether it changes anything beyond its own memory. */
  readonly changes?: 'nothing' | 'adds' | 'destroys';
  /** Whether it asks anybody outside this machine. */
  readonly usesNetwork?: boolean;
  /** The memory packs and `route` leave no row of their runs. */
  readonly unaudited?: true;
  /** One of the owner's own; another revision is another pack to the cache. */
  readonly own?: { readonly revision: string; readonly hosts?: readonly string[] };
  /** Its owner has not turned it on, so agents are not offered it. */
  readonly off?: boolean;
  /** Why it cannot run at present, and what its owner can do. */
  readonly unavailable?: () => string | undefined;
}

/** A pack as the engine runs it. */
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

/** Lets the compiler compare a handler with its schemas. */
export const definePack = <Input extends z.ZodType, Output extends z.ZodType>(pack: Typed<Input, Output>): Pack =>
  // The engine hands in what the schema parsed, and nothing else.
  pack as Typed<Input, Output> & { readonly handler: Pack['handler'] };

/** A tool's name has no dots; our own packs are known without their group. */
export const toolNameOf = ({ name }: Pick<Pack, 'name'>): string => name.replace(/^helmdeck\./, '').replaceAll('.', '_');
