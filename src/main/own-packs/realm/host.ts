/**
 * What the pack's realm may ask of the process. Strings in, strings out: an object of either realm would lead to the constructors
 * of that realm.
 */
export type HostCall = (operation: string, text: string) => string;

/** How the process calls into the realm. */
export interface Realm {
  /** Before the pack is loaded: makes the globals, and takes the task that the process was started for. */
  readonly start: (call: HostCall, task: string) => void;
  /** The file has been evaluated; this is its default export. */
  readonly packLoaded: (pack: unknown) => void;
  /** A line from the program. */
  readonly receive: (line: string) => void;
  /** A timer has come to its time. */
  readonly fireTimer: (id: number) => void;
  /** The pack threw outside its handler, or could not be loaded. */
  readonly fail: (error: unknown) => void;
  /** What `import()` throws, made here so that no error of the process gets into the realm. */
  readonly refuseImport: () => never;
}

let call: HostCall | undefined;

export function connectHost(given: HostCall): void {
  call = given;
}

/** Errors of the process stay there: the realm throws its own. */
export function callHost(operation: string, text: string): string {
  let answer: string | undefined;
  try {
    answer = call?.(operation, text);
  } catch {
    // Thrown below, outside of the scope of the process's error.
  }
  if (answer === undefined) throw new Error(`${operation} failed`);
  return answer;
}
