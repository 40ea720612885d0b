const NAME = 'helmdeck-memory';

let currentCommand = NAME;
let absoluteCommand = NAME;

/**
 * Sets how messages spell the `helmdeck-memory` command: `command` works in the owner's current folder, `absolute` works in any
 * folder. Called once, at startup.
 */
export function setCliCommand(command: string, absolute = command): void {
  currentCommand = command;
  absoluteCommand = absolute;
}

export const absoluteCliCommand = (): string => absoluteCommand;

/**
 * Replaces `helmdeck-memory` in suggested commands by the command that works in the current folder. Paths and `npx` commands stay
 * unchanged.
 */
export const withCliCommand = (text: string): string =>
  currentCommand === NAME ? text : text.replaceAll(/(?<![\w/.-]|npx )helmdeck-memory(?= [a-z<-])/g, () => currentCommand);

/** Fields that never contain stored text, because stored text must not be changed. */
const MESSAGE_FIELDS: ReadonlySet<string> = new Set(['why', 'remedy', 'says']);

/** Applies `withCliCommand` to the message fields of a value, at any depth. */
export function withCliCommands<T>(value: T): T {
  if (currentCommand === NAME || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => withCliCommands(item)) as T;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]: [string, unknown]) => [
      name,
      MESSAGE_FIELDS.has(name) && typeof field === 'string' ? withCliCommand(field) : withCliCommands(field),
    ]),
  ) as T;
}
