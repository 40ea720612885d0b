import type { HookEvent } from '../../contract/client.ts';
import { HOOK_EVENTS } from '../../contract/names.ts';
import type { HookCommands, InstalledHooks } from './connector.ts';
import { dropValue, type JsonPath, setValue, valueAt } from './json-text.ts';
import { isOurHook } from './launch.ts';

/** Time limit of a hook in the client's configuration. The hook itself ends far earlier. */
export const HOOK_SECONDS = 5;

/** A client's form of hooks. Claude Code, Codex and Gemini CLI use nearly the same form. */
export interface HookFormat {
  /** The client's names of our events. An event is absent if the client shows its model no text of a hook. */
  readonly names: Readonly<Partial<Record<HookEvent, string>>>;
  /** Returns the group that contains one hook with this command, or the hook itself if there are no groups. */
  readonly group: (event: HookEvent, command: string) => HookGroup;
  /** True if the list of an event contains hooks instead of groups. */
  readonly isFlat?: true;
  /** Version of the form, which the file must contain. */
  readonly version?: number;
  /** True if the client refers to hooks by their positions, so that the positions of other hooks must not change. */
  readonly isPositional?: true;
}

interface HookGroup {
  readonly matcher?: string;
  readonly [member: string]: unknown;
}

/** A hook of ours in a configuration. */
export interface PlacedHook {
  readonly event: HookEvent;
  /** Position of the group in the list of the event, and of the hook in the group. */
  readonly group: number;
  /** Undefined if there are no groups. */
  readonly index: number | undefined;
  readonly matcher: unknown;
  readonly handler: Readonly<Record<string, unknown>> & { readonly command: string };
}

/** Returns our hooks in the text. Ignores values that are not hooks, because the client reports them itself. */
export function hooksIn(text: string, { names, isFlat }: Pick<HookFormat, 'names' | 'isFlat'>): PlacedHook[] {
  const all = Object(valueAt(text, ['hooks'])) as Record<string, unknown>;
  return HOOK_EVENTS.flatMap((event) =>
    listOf(all[names[event] ?? '']).flatMap((value, group): PlacedHook[] => {
      if (isFlat) {
        const handler = value as PlacedHook['handler'];
        return isOurHook(value) ? [{ event, group, index: undefined, matcher: undefined, handler }] : [];
      }
      const { matcher, hooks } = Object(value) as { matcher?: unknown; hooks?: unknown };
      return listOf(hooks).flatMap((handler, index) =>
        isOurHook(handler) ? [{ event, group, index, matcher, handler: handler as PlacedHook['handler'] }] : [],
      );
    }),
  );
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const commandsOf = (hooks: readonly PlacedHook[]): InstalledHooks['commands'] =>
  hooks.map(({ event, handler }) => ({ event, command: handler.command }));

/**
 * Adds our hooks, each as a group at the end of the event's list, and removes our hooks of the other events. Changes only the
 * command of a hook that exists, so that its position and the owner's settings, such as a timeout, are kept.
 */
export function withHooks(text: string, format: HookFormat, commands: HookCommands): string {
  const { version } = format;
  const isAdded = version !== undefined && Object.keys(commands).length > 0 && valueAt(text, ['version']) === undefined;
  return HOOK_EVENTS.reduce(
    (before, event) => {
      const command = commands[event];
      const name = format.names[event];
      if (name === undefined) return before;
      const [first, ...others] = hooksIn(before, format).filter((hook) => hook.event === event);
      if (command === undefined) return withoutEvent(before, format, event);
      const bare = others.toReversed().reduce((rest, hook) => dropHook(rest, format, hook), before);
      const list = ['hooks', name];
      if (!first) return setValue(bare, [...list, lengthAt(bare, list)], format.group(event, command));
      const group = [...list, first.group];
      if (first.index === undefined) return setValue(bare, [...group, 'command'], command);
      const { matcher } = format.group(event, command);
      const isAlone = lengthAt(bare, [...group, 'hooks']) === 1;
      const matched = isAlone && matcher !== undefined ? setValue(bare, [...group, 'matcher'], matcher) : bare;
      return setValue(matched, [...group, 'hooks', first.index, 'command'], command);
    },
    isAdded ? setValue(text, ['version'], version) : text,
  );
}

/** Removes our hooks, and the lists that become empty unless the original text has them. */
export function withoutHooks(text: string, format: HookFormat, original?: string): string {
  const bare = HOOK_EVENTS.reduce((before, event) => withoutEvent(before, format, event, original), text);
  return bare === text ? text : dropIfEmpty(bare, ['hooks'], original);
}

function withoutEvent(text: string, format: HookFormat, event: HookEvent, original?: string): string {
  const own = hooksIn(text, format).filter((hook) => hook.event === event);
  const bare = own.toReversed().reduce((rest, hook) => dropHook(rest, format, hook), text);
  return bare === text ? text : dropIfEmpty(bare, ['hooks', format.names[event] ?? ''], original);
}

function dropHook(text: string, { names, isPositional }: HookFormat, { event, group, index }: PlacedHook): string {
  const list = ['hooks', names[event] ?? ''];
  if (index === undefined) return dropValue(text, [...list, group]);
  const inner = [...list, group, 'hooks'];
  if (lengthAt(text, inner) > 1) return dropValue(text, [...inner, index]);
  const isLast = group === lengthAt(text, list) - 1;
  // An empty group runs nothing, and keeps the positions of the groups after it.
  return isPositional && !isLast ? setValue(text, [...list, group], { hooks: [] }) : dropValue(text, [...list, group]);
}

const lengthAt = (text: string, path: JsonPath): number => listOf(valueAt(text, path)).length;

function dropIfEmpty(text: string, path: JsonPath, original = ''): string {
  const isEmpty = Object.keys(Object(valueAt(text, path))).length === 0;
  return isEmpty && valueAt(original, path) === undefined ? dropValue(text, path) : text;
}
