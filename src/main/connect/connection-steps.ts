import { existsSync, rmdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ConnectionPlan, HookEvent } from '../../contract/client.ts';
import { Failure } from '../../contract/failure.ts';
import { HOOK_EVENTS } from '../../contract/names.ts';
import { pathsIn, type StepRunner } from './changes.ts';
import { digestOf, isReadableByOthers, readConfigFile, restoreMode } from './config-file.ts';
import type {
  ClientEntry,
  Connector,
  EditStep,
  EntryState,
  HookCommands,
  LocalMachine,
  OriginalTexts,
  Step,
} from './connector.ts';
import { changedLines } from './diff.ts';
import { hookCommand } from './launch.ts';

export const MASKED_TOKEN = '••••••••';

export const textsOf = (bytes: StepRunner['before']): OriginalTexts =>
  new Map([...bytes].map(([path, one]) => [path, one?.toString('utf8')]));

export const digestIn = (text: string | undefined): string => digestOf(text === undefined ? undefined : Buffer.from(text));

export function requirePresent({ name }: Connector, look: EntryState): void {
  if (look.at === 'present' || look.at === 'bundled') return;
  const why = look.at === 'broken' ? look.why : `${name} does not show the entry for Helmdeck Memory after it was added.`;
  throw new Failure('handler_failed', `${why} The client was not connected, and its files were restored.`);
}

/** Restores the file's original mode, unless the owner has let other users read the file since the client was connected. */
export function removeRestriction(path: string, mode: number): void {
  if (!isReadableByOthers(readConfigFile(path)?.mode ?? mode)) restoreMode(path, mode);
}

export function previewOf({ path, edit, holdsToken }: EditStep): ConnectionPlan['files'][number] {
  const file = readConfigFile(path);
  const before = file?.text ?? '';
  return {
    path: file?.target ?? path,
    created: file === undefined,
    ...(holdsToken && { holds_token: true }),
    lines: changedLines(maskTokens(before), maskTokens(edit(file?.text) ?? '')),
  };
}

/** Replaces every token in the text with dots, including a token that the file already contained. */
const maskTokens = (text: string): string => text.replaceAll(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, MASKED_TOKEN);

/** Returns the folders that must be created for the edits, outermost first. */
export function missingFolders(steps: readonly Step[]): string[] {
  const missing: string[] = [];
  for (const path of pathsIn(steps)) {
    const own: string[] = [];
    for (let folder = dirname(path); !existsSync(folder) && !missing.includes(folder); folder = dirname(folder))
      own.unshift(folder);
    missing.push(...own);
  }
  return missing;
}

export function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Ignore the error: the folder contains other files or was deleted.
  }
}

interface HookSource {
  readonly entry: ClientEntry;
  readonly machine: LocalMachine;
  readonly folder: string;
  /** The events that the request names. */
  readonly chosen: readonly HookEvent[] | undefined;
  /** The hooks of the present connection. */
  readonly earlier: HookCommands | undefined;
}

/** Returns the commands of the chosen hooks, or else of those that the client has. A new client gets all hooks. */
export function hookCommandsFor({ id, name, hooks }: Connector, source: HookSource): HookCommands {
  const { entry, machine, folder, chosen, earlier } = source;
  if (!hooks) {
    if (chosen === undefined || chosen.length === 0) return {};
    throw new Failure('invalid_input', `Helmdeck Memory has no hooks for ${name}. Leave the hooks out.`);
  }
  const { windowsShell } = hooks;
  const target = { folder, client: id, platform: machine.platform, windowsShell };
  const { events: supported = HOOK_EVENTS } = hooks;
  const missing = chosen?.find((event) => !supported.includes(event));
  if (missing !== undefined) {
    throw new Failure(
      'invalid_input',
      `${name} shows its model no text of a hook at the event ${missing}. Leave ${missing} out.`,
    );
  }
  const events = supported.filter((event) => (chosen ? chosen.includes(event) : !earlier || earlier[event] !== undefined));
  const isFromPlugin = hooks.isFromPlugin?.(machine) ?? false;
  return Object.fromEntries(events.map((event) => [event, isFromPlugin ? '' : hookCommand(entry.command, target, event)]));
}
