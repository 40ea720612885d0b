import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { addPath } from './changes.ts';
import { readConfigFile } from './config-file.ts';
import type { HookCommands, InstalledHooks } from './connector.ts';
import { commandsOf, HOOK_SECONDS, type HookFormat, hooksIn, type PlacedHook, withHooks } from './hook-text.ts';
import { valueAt } from './json-text.ts';
import { restoreValue, setKeys, setTable, tableAt } from './toml-text.ts';

export const FORMAT: HookFormat = {
  names: { session: 'SessionStart', prompt: 'UserPromptSubmit' },
  // Codex adds the text of a hook again when it resumes a session, although the session still contains it.
  group: (event, command) => ({
    ...(event === 'session' && { matcher: 'startup|clear|compact' }),
    hooks: [{ type: 'command', command, timeout: HOOK_SECONDS }],
  }),
  isPositional: true,
};

/** Codex's names of the events in the keys of its records of trust. */
const KEY_NAMES = { session: 'session_start', prompt: 'user_prompt_submit' } as const;

/** The table in `config.toml` in which Codex records which hooks its user has reviewed. */
const STATE = ['hooks', 'state'];

export const REVIEW = 'Codex asks you to review the new hooks when it starts. Until you trust them there, it does not run them.';

export const hooksFileOf = (config: string): string => join(dirname(config), 'hooks.json');

const textOf = (path: string): string => readConfigFile(path)?.text ?? '';

/** Reads a file, and names the file in the message if its text cannot be parsed. */
function inspect<T>(path: string, read: (text: string) => T): T {
  try {
    return read(textOf(path));
  } catch (error) {
    throw addPath(path, error);
  }
}

/**
 * Throws if the owner's hooks are in `config.toml`, because Codex warns in every session if hooks are in both files. Hooks in both
 * files are the owner's own choice.
 */
export function requireHooksFile(config: string): void {
  const { state: _, ...events } = inspect(config, (text) => Object(tableAt(text, ['hooks'])) as Record<string, unknown>);
  const inFile = inspect(hooksFileOf(config), (text) => Object.keys(Object(valueAt(text, ['hooks']))));
  if (Object.keys(events).length === 0 || inFile.length > 0) return;
  throw new Failure(
    'invalid_input',
    'Your hooks for Codex are in config.toml, and Codex reports a problem if there are hooks in hooks.json too. Move them to hooks.json, or connect Codex without hooks (--no-hooks).',
  );
}

/** Records in `config.toml` that the owner has reviewed the hooks with these commands, as Codex itself does after its review. */
export function withTrust(text: string, config: string, commands: HookCommands): string {
  const file = hooksFileOf(config);
  const placed = inspect(file, (hooks) => hooksIn(withHooks(hooks, FORMAT, commands), FORMAT));
  return placed.reduce((before, hook) => {
    const path = [...STATE, keyOf(file, hook)];
    const trusted = { trusted_hash: hashOf(hook) };
    return tableAt(before, path) === undefined ? setTable(before, path, trusted) : setKeys(before, path, trusted);
  }, text);
}

/** Removes the records of trust in our hooks, whether we wrote them or Codex. */
export function withoutTrust(text: string, config: string, original: string | undefined): string {
  const file = hooksFileOf(config);
  return inspect(file, (hooks) => hooksIn(hooks, FORMAT)).reduce((before, hook) => {
    try {
      return restoreValue(before, [...STATE, keyOf(file, hook)], original);
    } catch (error) {
      // Codex ignores the record of a hook that does not exist.
      if (error instanceof Failure) return before;
      throw error;
    }
  }, text);
}

export function lookAtHooks(config: string): InstalledHooks {
  const file = hooksFileOf(config);
  const placed = inspect(file, (text) => hooksIn(text, FORMAT));
  const settings = textOf(config);
  const records = Object(tableAt(settings, STATE)) as Record<string, { trusted_hash?: unknown; enabled?: unknown }>;
  const isOff = Object(tableAt(settings, ['features'])).hooks === false;
  const isDisabled = placed.some((hook) => records[keyOf(file, hook)]?.enabled === false);
  return {
    commands: commandsOf(placed),
    waitsForReview: placed.some((hook) => records[keyOf(file, hook)]?.trusted_hash !== hashOf(hook)),
    ...((isOff || isDisabled) && { why: 'The hooks are turned off in Codex. Turn them on there.' }),
  };
}

/** Codex refers to a hook by the resolved folder of its settings, and by the hook's position in the file. */
function keyOf(file: string, { event, group, index }: PlacedHook): string {
  return `${join(resolved(dirname(file)), 'hooks.json')}:${KEY_NAMES[event]}:${group}:${index}`;
}

function resolved(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}

/** Returns the hash with which Codex recognizes a reviewed hook: of compact JSON with sorted keys and default values. */
function hashOf({ event, matcher, handler }: PlacedHook): string {
  const { command, timeout = 600, type, async: isAsync = false, statusMessage } = handler;
  const hook = { async: isAsync, command, ...(statusMessage !== undefined && { statusMessage }), timeout, type };
  // Codex ignores the matcher of this event.
  const matched = event === 'session' && typeof matcher === 'string' && { matcher };
  const text = JSON.stringify({ event_name: KEY_NAMES[event], hooks: [hook], ...matched });
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
