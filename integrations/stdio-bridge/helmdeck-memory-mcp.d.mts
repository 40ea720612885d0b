import type { Readable, Writable } from 'node:stream';
import type { TLSSocket } from 'node:tls';

interface Surroundings {
  readonly argv?: readonly string[];
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly stdin?: Readable;
  readonly stdout?: Writable;
}

/** Runs the bridge until the client disconnects. The process should exit then. */
export declare function runBridge(surroundings?: Surroundings): Promise<void>;

/**
 * Returns the path of the data folder, in which the bridge finds the program's address. Must match `resolveDataFolder` in
 * src/main/config/config.ts.
 */
export declare function dataFolder(
  environment: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform,
  home: () => string,
): string;

interface ServerEndpoint {
  readonly host: string;
  readonly port: number;
  /** The Host header. */
  readonly authority: string;
  /** Scheme, name and port of the server. */
  readonly instance: string;
}

/** Returns the endpoint of a server. `ca` has certificates of further authorities, in PEM. Throws if the URL is not https. */
export declare function serverEndpoint(url: string, ca: string | undefined): ServerEndpoint;

/**
 * Opens a connection to a server and verifies its certificate. The message of an error is one sentence for the user; its `code` is
 * `untrusted` if the certificate cannot be trusted.
 */
export declare function connectVerified(
  endpoint: ServerEndpoint,
  callback: (error: (Error & { readonly code: string }) | null, socket?: TLSSocket) => void,
): void;
