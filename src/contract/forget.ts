import * as z from 'zod';
import { CategoryField } from './fact-fields.ts';
import { lazy, type SchemaOutput } from './lazy.ts';
import { inputObject, flag } from './text.ts';

const whole = ['all', 'facts', 'packs', 'pipelines'] as const;
const named = ['pack', 'pipeline', 'key', 'prefix', 'category', 'tag', 'client'] as const;

type Whole = (typeof whole)[number];
type Named = (typeof named)[number];

/** What to forget. `name` is the text after the first colon, byte for byte; only a category is folded, as facts store it. */
export type Scope = { kind: Whole } | { kind: Named; name: string };

const spellings =
  'all, facts, packs, pipelines, pack:<id>, pipeline:<id>, key:<key>, prefix:<text>, category:<name>, tag:<tag> or client:<name>';

const isWhole = (word: string): word is Whole => whole.some((known) => known === word);
const isNamed = (word: string): word is Named => named.some((known) => known === word);

/**
 * Nothing is guessed: a scope that cannot be read exactly is no scope, because the nearest one may erase too much.
 * A lone surrogate is refused too: in UTF-8 it would become U+FFFD, and so name a fact that was not meant.
 */
export function parseScope(text: string): Scope | undefined {
  if (isWhole(text)) return { kind: text };
  const colon = text.indexOf(':');
  const kind = text.slice(0, Math.max(colon, 0));
  const name = text.slice(colon + 1);
  if (!isNamed(kind) || name.trim() === '' || !name.isWellFormed()) return undefined;
  return { kind, name };
}

export const spellScope = (scope: Scope): string => ('name' in scope ? `${scope.kind}:${scope.name}` : scope.kind);

/** What stands in clear can be forgotten in every state of the key; keys, tags and clients are sealed and must be opened first. */
export function needsKey({ kind }: Scope): boolean {
  switch (kind) {
    case 'all':
    case 'facts':
    case 'packs':
    case 'pipelines':
    case 'category':
      return false;
    case 'pack':
    case 'pipeline':
    case 'key':
    case 'prefix':
    case 'tag':
    case 'client':
      return true;
  }
}

/** Answering "0 deleted" would read as success to a client that misspelled the category. */
const notACategory =
  'names a category that no fact can have; send 1 to 64 of a-z, 0-9, "_", "." and "-", beginning with a letter or digit, and packs or pipelines for what the engine writes';

const unreadable = `must say what to forget; send one of ${spellings}`;

export const ForgetInput = lazy(() =>
  inputObject(
    {
      scope: z
        .string({ error: unreadable })
        .meta({ examples: ['key:preferences/editor', 'category:preferences', 'pack:github.list_issues'] })
        .transform((text, issues): Scope => {
          const scope = parseScope(text);
          if (scope?.kind === 'category') {
            const category = CategoryField().safeParse(scope.name);
            if (category.success) return { kind: 'category', name: category.data };
            issues.addIssue(notACategory);
          } else {
            if (scope !== undefined) return scope;
            issues.addIssue(unreadable);
          }
          return z.NEVER;
        })
        .describe(
          `What to forget: ${spellings}. The text after the colon is matched exactly; only a category is lower-cased, as facts store it. Prefer key: for a single fact.`,
        ),
      dry_run: flag().default(false).describe('true counts what would go and deletes nothing.'),
    },
    {
      title: 'Forget',
      description:
        'Deletes from this memory for good, history and bytes included. There is no undo: when in doubt, ask with dry_run first.',
    },
  ),
);
export type ForgetInput = SchemaOutput<typeof ForgetInput>;

export const ForgetReceipt = lazy(() =>
  z.object({
    scope: z.string().describe('The scope as it was read: as sent, with a category in lower case.'),
    deleted: z.int().min(0).describe('How many entries went, each counted once; with dry_run, how many would go.'),
    purged: z.boolean().describe('Whether no byte of them is left in the live files.'),
    older_backups: z
      .int()
      .min(0)
      .describe('Backups and other copies in the data folder that may still hold sealed copies; a restore forgets them again.'),
    undo: z
      .string()
      .exactOptional()
      .describe('What undoes this forget for a few seconds; only the window is given it, for a single fact.'),
    dry_run: z
      .literal(true)
      .exactOptional()
      .describe('Present when nothing was deleted because it was only asked how much would go.'),
  }),
);
export type ForgetReceipt = SchemaOutput<typeof ForgetReceipt>;

export const UndoForgetInput = lazy(() =>
  inputObject(
    {
      undo: z
        .string({ error: 'must be text; send what the forget answered' })
        .regex(/^[0-9a-f]{32}$/, { error: 'must be what the forget answered; send that' })
        .describe('What the forget answered as undo.'),
    },
    {
      title: 'Undo a forget',
      description: 'Brings back one fact with its author, times and history, seconds after the window forgot it.',
    },
  ),
);
export type UndoForgetInput = SchemaOutput<typeof UndoForgetInput>;
