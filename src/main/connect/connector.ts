import type { ClientVerification } from '../../contract/client.ts';
import type { TokenScope } from '../../contract/token.ts';
import type { HostMachine } from '../config/config.ts';

/** The name of our entry in every client's configuration. */
export const ENTRY = 'helmdeck';

/** The command with which a client starts our bridge. It contains no token: the bridge reads the token from a file. */
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

/** The machine on which the clients run. */
export interface LocalMachine extends HostMachine {
  /** Folders that installers use, for a program that was started without a shell's PATH. */
  places(): readonly string[];
  /** Runs a program without a shell, without our environment variables, and with a time limit. */
  run(program: string, args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<ProgramResult>;
}

/** What a connector may write to its client's configuration. */
export interface Offer {
  /** The connector's id, which also signs what the client writes. */
  readonly client: string;
  readonly entry: Entry;
  /** The data folder, which contains `endpoint.json`. */
  readonly folder: string;
  /** Contains the token; readable by its owner only. */
  readonly tokenFile: string;
  /**
   * For a client that can neither start the bridge nor read a token file. Dots while the plan is only shown. A step may write it to
   * a file, never to a command line.
   */
  readonly token: string;
}

export interface Detected {
  /** Whether the client's program or its files were found. */
  readonly installed: boolean;
  readonly version?: string;
  /** Absolute path of the client's program, if it can be run safely. */
  readonly program?: string;
  /** The configuration file for our entry, whether or not it exists. */
  readonly config: string;
}

/** Edits one of the client's files. The owner sees the difference before it is applied. */
export interface EditStep {
  readonly does: 'edit';
  /** Absolute. If it is a link, its target is changed. */
  readonly path: string;
  /**
   * Returns the complete new text, including a byte order mark if there was one; undefined deletes the file. Changes only our entry,
   * and throws a `Failure` if that cannot be done safely. Called for the preview, and again when the plan is applied.
   */
  readonly edit: (before: string | undefined) => string | undefined;
  /** The edit writes the token, so other users lose access to the file until the token is removed. */
  readonly holdsToken?: true;
}

/** Runs the client's own program, which writes its configuration. */
export interface RunStep {
  readonly does: 'run';
  /** Absolute. */
  readonly program: string;
  /** Never contains a token: every user of the machine can read command lines. */
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Files that the program changes. Their original bytes are stored for a rollback. */
  readonly touches: readonly string[];
  /**
   * The expected result, which is shown in the preview. Applied if the program fails or writes something else: some programs reformat
   * the file and lose comments.
   */
  readonly instead?: EditStep;
  /** The program does more than the edit, so its failure cancels the connection. */
  readonly needed?: true;
  /**
   * Extracts the parts of a file that the program does not change. If they differ afterwards, another program wrote to the file.
   * Without it, every change during the run is attributed to this program.
   */
  readonly others?: (text: string) => unknown;
  /** A folder that the program creates, and the arguments with which it removes it. */
  readonly back?: { readonly made: string; readonly args: readonly string[] };
}

/** Deletes a folder of ours that the client's program left behind or can no longer remove. */
interface RemoveStep {
  readonly does: 'remove';
  readonly folder: string;
}

export type Step = EditStep | RunStep | RemoveStep;

export type Look =
  | { readonly at: 'absent' }
  /** `entry` is the command in the configuration; absent if the client starts no command. */
  | { readonly at: 'present'; readonly entry?: Entry; readonly disabled?: true }
  /** Our bundle is installed in the client, which needs only the token. */
  | { readonly at: 'bundled'; readonly disabled?: true }
  /** The connection is incomplete, or the configuration cannot be read. `why` is a sentence that quotes no values. */
  | { readonly at: 'broken'; readonly why: string };

/** Text of each file before the connection, by path. Contains only files that we changed. */
export type OriginalTexts = ReadonlyMap<string, string | undefined>;

/** Describes one client: how to detect and connect it. It changes nothing itself; `Connections` runs its steps. */
export interface Connector {
  /** Also used in its token and its token file's name. Lower-case letters and hyphens. */
  readonly id: string;
  /** The display name. */
  readonly name: string;
  readonly transport: 'stdio' | 'http';
  /** The client contains a Node, which it uses for the command `node`. */
  readonly bringsNode?: true;
  /** Scopes of its token. Default: the default scopes of a token. */
  readonly scopes?: readonly TokenScope[];
  /** Fixed subject of its token, regardless of the request. For a client that must not read any memory. */
  readonly subject?: string;
  /** What the owner must do for the client to load the connection, such as a restart. */
  readonly afterwards?: string;
  detect(machine: LocalMachine): Promise<Detected>;
  look(machine: LocalMachine): Promise<Look>;
  /** For a client that stores the memory's address: the reason if that address is outdated. `folder` is the data folder. */
  outdated?(machine: LocalMachine, folder: string): string | undefined;
  connect(machine: LocalMachine, offer: Offer): Promise<readonly Step[]>;
  /**
   * Steps that remove our entry and restore the entry that it replaced. Used for files that other programs have changed; the
   * others get their original bytes back.
   */
  disconnect(machine: LocalMachine, originals: OriginalTexts): Promise<readonly Step[]>;
  /** A link with which the client asks its user to add the entry. Contains no token. */
  link?(entry: Entry): string;
  /** Tests a client that starts no command: sends the client's request to a server that has proved to be this program. */
  verify?(machine: LocalMachine, folder: string): Promise<ClientVerification>;
}
