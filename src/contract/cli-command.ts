const NAME = 'helmdeck-memory';

let call = NAME;
let callAnywhere = NAME;

/** Sets the command that starts the command line: in the owner's current folder, and in any folder. Called once, at the start. */
export function setCliCommand(command: string, anywhere = command): void {
  call = command;
  callAnywhere = anywhere;
}

export const absoluteCliCommand = (): string => callAnywhere;

/** Replaces `helmdeck-memory` in suggested commands by the command that works here. Paths and `npx` commands stay as they are. */
export const withCliCommand = (text: string): string =>
  call === NAME ? text : text.replaceAll(/(?<![\w/.-]|npx )helmdeck-memory(?= [a-z<-])/g, () => call);

/** Fields that hold our own sentences, never stored text. */
const SENTENCE_FIELDS: ReadonlySet<string> = new Set(['why', 'remedy', 'says']);

/** Applies `withCliCommand` to these fields, at any depth. */
export function withCliCommands<T>(value: T): T {
  if (call === NAME || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => withCliCommands(item)) as T;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]: [string, unknown]) => [
      name,
      SENTENCE_FIELDS.has(name) && typeof field === 'string' ? withCliCommand(field) : withCliCommands(field),
    ]),
  ) as T;
}
