import type { Readable, Writable } from 'node:stream';

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
