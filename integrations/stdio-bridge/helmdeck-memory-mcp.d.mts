import type { Readable, Writable } from 'node:stream';

interface Surroundings {
  readonly argv?: readonly string[];
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly stdin?: Readable;
  readonly stdout?: Writable;
}

/** Runs until the client goes; the process should end then. */
export declare function runBridge(surroundings?: Surroundings): Promise<void>;

/** Where the bridge looks for the program: the rule of src/main/config.ts. */
export declare function dataFolder(
  environment: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform,
  home: () => string,
): string;
