import type { ClientVerification, HookEvent } from '../../contract/client.ts';
import type { TokenScope } from '../../contract/token.ts';
import type { HostMachine } from '../config/config.ts';

/** The name of our entry in the configuration of every client. */
export const ENTRY = 'helmdeck';

/**
 * An entry in a client's configuration: the command that starts our bridge. Contains no token, because the bridge reads the token
 * from a file.
 */
export interface ClientEntry {
  /** Absolute path. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface ProgramResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface LocalMachine extends HostMachine {
  /** Returns the name of the model that `/v1/embeddings` serves. Absent in a process without a memory. */
  readonly embeddingsModel?: () => string;
  /** Folders in which installers put programs. Needed because a program started from the desktop lacks the shell's PATH. */
  places(): readonly string[];
  /** Runs a program without a shell and with a time limit. The program does not receive our HELMDECK_ environment variables. */
  run(program: string, args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<ProgramResult>;
}

/** Values that a connector is allowed to write to its client's configuration. */
export interface Offer {
  /** The connector's id. Also recorded as the author of everything that the client writes. */
  readonly client: string;
  readonly entry: ClientEntry;
  /** The data folder, which contains `endpoint.json`. */
  readonly folder: string;
  /** Path of the file that contains the token. Only its owner can read the file. */
  readonly tokenFile: string;
  /**
   * The token itself, for a client that can neither start the bridge nor read a token file. In a preview, dots replace the token.
   * A step can write the token to a file but must never put it on a command line.
   */
  readonly token: string;
  readonly hooks: HookOffer;
}

/** The shell commands of hooks, by event. Empty for a hook that a plugin runs. */
export type HookCommands = Readonly<Partial<Record<HookEvent, string>>>;

export interface HookOffer {
  readonly commands: HookCommands;
  /** Whether the owner has agreed to record their review of these hooks in the client. */
  readonly trust: boolean;
}

/** Our hooks in a client's configuration. */
export interface InstalledHooks {
  /** The command of each of our hooks. An event can have several hooks of ours if a person added one. */
  readonly commands: readonly { readonly event: HookEvent; readonly command: string }[];
  /** True if the client runs the hooks only after its user has reviewed them. */
  readonly waitsForReview?: boolean;
  /** Why the client does not run the hooks, and what to do. */
  readonly why?: string;
}

export interface DetectedClient {
  /** True if the client's program or configuration was found. */
  readonly installed: boolean;
  readonly version?: string;
  /** Absolute path of the client's program. Absent if the program was not found or other users could replace it. */
  readonly program?: string;
  /** Path of the configuration file for our entry. The file need not exist. */
  readonly config: string;
}

/** Edits one of the client's files. The owner sees the changed lines before the edit is applied. */
export interface EditStep {
  readonly does: 'edit';
  /** Absolute path. If the path is a symbolic link, the file that it points to is edited. */
  readonly path: string;
  /**
   * Returns the complete new text of the file, including the byte order mark if there was one. Undefined deletes the file.
   * Changes only our entry, and throws a `Failure` if that is not safely possible. Called for the preview, and again when the
   * plan is applied.
   */
  readonly edit: (before: string | undefined) => string | undefined;
  /** True if the edit writes the token. Other users then cannot access the file until the token is removed. */
  readonly holdsToken?: true;
}

/** Runs the client's own program, which writes the client's configuration. */
export interface RunStep {
  readonly does: 'run';
  /** Absolute path of the program. */
  readonly program: string;
  /** Command line arguments. Never contain a token, because every user of the machine can read command lines. */
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Paths of files that the program changes. The original bytes of these files are stored for a rollback. */
  readonly touches: readonly string[];
  /**
   * The edit shown in the preview. Applied after the run, because some programs reformat the file and lose comments. Not applied
   * if the program successfully created the file.
   */
  readonly instead?: EditStep;
  /** True if the edit cannot replace the program. A failure of the program then cancels the connection. */
  readonly needed?: true;
  /**
   * Extracts the parts of a file that the program does not change. If these parts differ after the run, another program wrote to
   * the file. Without this function, every change during the run is attributed to the program.
   */
  readonly others?: (text: string) => unknown;
  /** `made` is a folder that the program creates. `args` are the arguments with which the program removes that folder. */
  readonly back?: { readonly made: string; readonly args: readonly string[] };
}

/** Deletes a folder of ours, such as a plugin, that the client's program left behind or can no longer remove. */
interface RemoveStep {
  readonly does: 'remove';
  readonly folder: string;
}

export type Step = EditStep | RunStep | RemoveStep;

export type EntryState =
  | { readonly at: 'absent' }
  /** `entry` is the command in the configuration. Absent if the client starts no command. */
  | { readonly at: 'present'; readonly entry?: ClientEntry; readonly disabled?: true }
  /** Our plugin or extension bundle is installed in the client, so the client needs only the tokens. */
  | { readonly at: 'bundled'; readonly disabled?: true }
  /**
   * The connection is incomplete, or the configuration cannot be read. `why` is a sentence that contains no values from the file.
   */
  | { readonly at: 'broken'; readonly why: string };

/** Original text of each file that we changed, by path; undefined if the file did not exist. */
export type OriginalTexts = ReadonlyMap<string, string | undefined>;

export interface HookSupport {
  /** Events at which the client shows its model the text of a hook. Default: all. */
  readonly events?: readonly HookEvent[];
  look(machine: LocalMachine): Promise<InstalledHooks>;
  /** The program that runs the commands of hooks on Windows. */
  readonly windowsShell?: 'powershell';
  /** True if our plugin is installed in the client, so that the hooks are not written to the client's configuration. */
  readonly isFromPlugin?: (machine: LocalMachine) => boolean;
  /** Text that says what the owner must do before the client runs the hooks. Absent if the client runs them at once. */
  readonly review?: string;
}

/** Describes how to detect and connect one client. Only plans changes: `Connections` runs the steps. */
export interface Connector {
  /** Lower-case letters and hyphens. Also used in the client's token and in the name of its token file. */
  readonly id: string;
  readonly name: string;
  readonly transport: 'stdio' | 'http';
  /** True if the client contains a Node, which it uses for the command `node`. */
  readonly bringsNode?: true;
  /** Scopes of the client's token. If absent, the default scopes of a token. */
  readonly scopes?: readonly TokenScope[];
  /**
   * For a client that must not read any memory: its token is always issued for this subject, whatever subject the request names.
   */
  readonly subject?: string;
  /** Text that says what the owner must do so that the client loads the connection, such as a restart. */
  readonly afterwards?: string;
  detect(machine: LocalMachine): Promise<DetectedClient>;
  look(machine: LocalMachine): Promise<EntryState>;
  /**
   * For a client that stores the memory's address: returns a message if that address is outdated, otherwise undefined. `folder`
   * is the data folder.
   */
  outdated?(machine: LocalMachine, folder: string): string | undefined;
  /** Absent if we use no hooks of this client. */
  readonly hooks?: HookSupport;
  connect(machine: LocalMachine, offer: Offer): Promise<readonly Step[]>;
  /**
   * Returns the steps that remove our entry and restore the entry that it replaced. Used for files that other programs have
   * changed; all other files get their original bytes back.
   */
  disconnect(machine: LocalMachine, originals: OriginalTexts): Promise<readonly Step[]>;
  /** Returns a link that, when opened, makes the client ask its user to add our entry. Contains no token. */
  link?(entry: ClientEntry): string;
  /**
   * Tests a client that starts no command: sends the request that the client would send, but only to a server that has proved
   * that it is this program.
   */
  verify?(machine: LocalMachine, folder: string): Promise<ClientVerification>;
}
