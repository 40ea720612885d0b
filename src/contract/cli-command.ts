const NAME = 'helmdeck-memory';

let call = NAME;
let callAnywhere = NAME;

/** Set once at the start, to what starts the command line where its owner sits, and in any folder of this machine. */
export function setCliCommand(command: string, anywhere = command): void {
  call = command;
  callAnywhere = anywhere;
}

export const absoluteCliCommand = (): string => callAnywhere;

/** Where a text suggests a command, with what starts it here. What is spelled out already stays, such as a path. */
export const withCliCommand = (text: string): string =>
  call === NAME ? text : text.replaceAll(/(?<![\w/.-]|npx )helmdeck-memory(?= [a-z<-])/g, () => call);

const SAID: ReadonlySet<string> = new Set(['why', 'remedy', 'says']);

/** The same in every sentence of an answer that says what is wrong or what to do. Nothing that anybody stored is under these names. */
export function withCliCommands<T>(value: T): T {
  if (call === NAME || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one: unknown) => withCliCommands(one)) as T;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]: [string, unknown]) => [
      name,
      SAID.has(name) && typeof one === 'string' ? withCliCommand(one) : withCliCommands(one),
    ]),
  ) as T;
}
