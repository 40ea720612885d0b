/**
 * A function that calls the process from the pack's realm. The realms exchange only strings, because an object of one realm gives
 * access to that realm's constructors.
 */
export type HostCall = (operation: string, text: string) => string;

/** The functions with which the process calls the pack's realm. */
export interface Realm {
  /** Creates the globals and stores the task. Called before the pack is loaded. */
  readonly start: (call: HostCall, task: string) => void;
  /** Called when the pack's file has been evaluated, with the file's default export. */
  readonly packLoaded: (pack: unknown) => void;
  /** Called with each line from the program. */
  readonly receive: (line: string) => void;
  readonly fireTimer: (id: number) => void;
  /** Called when the pack threw outside its handler, or failed to load. */
  readonly fail: (error: unknown) => void;
  /** Throws the error for `import()` in the pack's realm, so that no error object of the process enters that realm. */
  readonly refuseImport: () => never;
}

let call: HostCall | undefined;

export function connectHost(given: HostCall): void {
  call = given;
}

/** Calls the process. If the call throws, throws a new error of this realm instead of the process's error. */
export function callHost(operation: string, text: string): string {
  let answer: string | undefined;
  try {
    answer = call?.(operation, text);
  } catch {
    // A new error is thrown below, where the process's error is out of scope.
  }
  if (answer === undefined) throw new Error(`${operation} failed`);
  return answer;
}
