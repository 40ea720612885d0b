/**
 * Calls from the pack's realm into the process. Only strings cross: an object of either realm would lead to that realm's
 * constructors.
 */
export type HostCall = (operation: string, text: string) => string;

/** How the process calls into the realm. */
export interface Realm {
  /** Runs before the pack is loaded: creates the globals and stores the task. */
  readonly start: (call: HostCall, task: string) => void;
  /** The file has been evaluated; receives its default export. */
  readonly packLoaded: (pack: unknown) => void;
  /** A line from the program. */
  readonly receive: (line: string) => void;
  /** A timer has elapsed. */
  readonly fireTimer: (id: number) => void;
  /** The pack threw outside its handler, or failed to load. */
  readonly fail: (error: unknown) => void;
  /** Throws the error of `import()` inside the realm, so that no error of the process enters it. */
  readonly refuseImport: () => never;
}

let call: HostCall | undefined;

export function connectHost(given: HostCall): void {
  call = given;
}

/** Replaces errors of the process with errors of this realm. */
export function callHost(operation: string, text: string): string {
  let answer: string | undefined;
  try {
    answer = call?.(operation, text);
  } catch {
    // Thrown below, outside the scope of the process's error.
  }
  if (answer === undefined) throw new Error(`${operation} failed`);
  return answer;
}
