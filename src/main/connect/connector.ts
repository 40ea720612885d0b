import type { ClientVerification } from '../../contract/client.ts';
import type { TokenScope } from '../../contract/token.ts';
import type { HostMachine } from '../config/config.ts';

/** How our entry is called in every client's configuration. */
export const ENTRY = 'helmdeck';

/** What a client starts: our bridge, which finds its token by itself. No token stands in it, nor on a command line. */
export interface Entry {
  /** Absolute. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface ProgramResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The machine as connectors see it. */
export interface LocalMachine extends HostMachine {
  /** Where installers put programs, for who was started without a shell's PATH. */
  places(): readonly string[];
  /** Never through a shell, with nothing of ours in its environment, and not for ever. */
  run(program: string, args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<ProgramResult>;
}

/** What a connector may hand to its client. */
export interface Offer {
  /** Of the connector, and of the token: what the client writes is signed with it. */
  readonly client: string;
  readonly entry: Entry;
  /** Where the memory keeps its data, with `endpoint.json` in it. */
  readonly folder: string;
  /** Holds the token, and nobody but its owner reads it. */
  readonly tokenFile: string;
  /**
   * For the rare client that can neither start the bridge nor read a file. While a plan is only shown it is a row of dots, and a
   * step that needs it is to put it into a file.
   */
  readonly token: string;
}

export interface Detected {
  /** Whether the client seems to be there: its program, or what it leaves behind when it was used. */
  readonly installed: boolean;
  readonly version?: string;
  /** Its own program, absolute, where that can be run safely. */
  readonly program?: string;
  /** The file that our entry stands in, or would. */
  readonly config: string;
}

/** Changes one file of the client's. It is shown as a difference before it is carried out. */
export interface EditStep {
  readonly does: 'edit';
  /** Absolute; a link is followed, and what it points to is changed. */
  readonly path: string;
  /**
   * The whole new text, with a BOM where there was one. Undefined: no file. It changes nothing but what is ours, and throws a
   * `Failure` that says why when that cannot be done safely. It is called again when the plan is carried out.
   */
  readonly edit: (before: string | undefined) => string | undefined;
  /** It puts the token into it, so whoever else may read the file may not any more, until it is taken out again. */
  readonly holdsToken?: true;
}

/** Asks the client's own program, which knows best how its configuration is written. */
export interface RunStep {
  readonly does: 'run';
  /** Absolute. */
  readonly program: string;
  /** Never with a token: every user of a machine can read them. */
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Files of which the exact bytes are kept, to be put back when nobody else changed them since. */
  readonly touches: readonly string[];
  /**
   * What it is to come to, as it is shown before. When the program fails, or writes the file in another way than this, it is done
   * so instead: programs lay the whole file out anew, and some lose comments.
   */
  readonly instead?: EditStep;
  /** It does more than an edit could, so nothing is done when it fails. */
  readonly needed?: true;
  /**
   * What it leaves as it is in the files that it touches: when that says something else, another program wrote there meanwhile. Where
   * this cannot be told, all that changed while it ran counts as its own.
   */
  readonly others?: (text: string) => unknown;
  /** What it makes beside those files, and what to ask the same program for to be rid of it again. */
  readonly back?: { readonly made: string; readonly args: readonly string[] };
}

/** Has nothing there that is ours alone, where its program has left it or is not there any more. */
interface RemoveStep {
  readonly does: 'remove';
  readonly folder: string;
}

export type Step = EditStep | RunStep | RemoveStep;

export type Look =
  | { readonly at: 'absent' }
  /** `entry`: what the client would start, as it stands there; absent where it starts nothing. */
  | { readonly at: 'present'; readonly entry?: Entry; readonly disabled?: true }
  /** The bridge is in it by a bundle of ours, which needs nothing more than the token. */
  | { readonly at: 'bundled'; readonly disabled?: true }
  /** Part of it is there; or the configuration cannot be read. One sentence, without a value. */
  | { readonly at: 'broken'; readonly why: string };

/** What files held before we came, by their path; one that is not named here was never changed by us. */
export type OriginalTexts = ReadonlyMap<string, string | undefined>;

/** One kind of client: how it is found, and what connects it. It only looks and says; `Connections` does. */
export interface Connector {
  /** Also the name in its token and of its token's file: small letters and hyphens. */
  readonly id: string;
  /** As people know it. */
  readonly name: string;
  readonly transport: 'stdio' | 'http';
  /** It has a Node of its own, and takes it where "node" is to be started. */
  readonly bringsNode?: true;
  /** What its token is good for; what a token is good for that says nothing, unless told. */
  readonly scopes?: readonly TokenScope[];
  /** Whose memory its token opens, whatever was asked: of one whose token is to open nobody's. */
  readonly subject?: string;
  /** What its owner has to do for it to notice, such as to start it again. */
  readonly afterwards?: string;
  detect(machine: LocalMachine): Promise<Detected>;
  look(machine: LocalMachine): Promise<Look>;
  /** For one that is told where the memory is: what stands there and is not so any more. `folder` is that of our data. */
  outdated?(machine: LocalMachine, folder: string): string | undefined;
  connect(machine: LocalMachine, offer: Offer): Promise<readonly Step[]>;
  /**
   * Files that nobody else changed get their old bytes back by themselves; of the others this takes out what is ours, and puts what
   * stood in its place before in it again.
   */
  disconnect(machine: LocalMachine, held: OriginalTexts): Promise<readonly Step[]>;
  /** Opened, it has the client ask its owner whether to add the entry: without a token, as the entry is. */
  link?(entry: Entry): string;
  /** For one that starts nothing which could be tried: asks as the client will, but only a program that has proved to be ours. */
  verify?(machine: LocalMachine, folder: string): Promise<ClientVerification>;
}
