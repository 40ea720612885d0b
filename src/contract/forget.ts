import * as z from 'zod';
import { CategoryField } from './fact-fields.ts';
import { count, flag, inputObject, lazy, type SchemaOutput } from './schema.ts';

const wholeKinds = ['all', 'facts', 'packs', 'pipelines'] as const;
const namedKinds = ['pack', 'pipeline', 'key', 'prefix', 'category', 'tag', 'client'] as const;

type WholeKind = (typeof wholeKinds)[number];
type NamedKind = (typeof namedKinds)[number];

/** The entries to forget. `name` is the text after the kind and a colon. A category is in lower case, as it is stored. */
export type Scope = { kind: WholeKind } | { kind: NamedKind; name: string };

const spellings =
  'all, facts, packs, pipelines, pack:<id>, pipeline:<id>, key:<key>, prefix:<text>, category:<name>, tag:<tag> or client:<name>';

const isWhole = (word: string): word is WholeKind => wholeKinds.some((known) => known === word);
const isNamed = (word: string): word is NamedKind => namedKinds.some((known) => known === word);

/**
 * Parses a scope. Returns undefined for other text, because a guess could delete too much. Text with a lone surrogate is refused
 * too: in UTF-8 the surrogate becomes U+FFFD, so the scope could match a different fact.
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

/**
 * Whether entries in the scope can be found only with the master key. Keys, tags and clients are sealed; kinds and categories are
 * not.
 */
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

/**
 * The error for an impossible category. A response of "0 deleted" would look like success to a client that misspelled the
 * category.
 */
const notACategory =
  'names a category that no fact can have; send 1 to 64 characters of a-z, 0-9, "_", "." and "-" that begin with a letter or digit, or use the scope packs or pipelines for reserved categories';

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
          `What to forget: ${spellings}. The text after the colon is matched exactly, but the case of a category is ignored. Use \`key:<key>\` for a single fact.`,
        ),
      dry_run: flag().default(false).describe('If `true`, only counts the entries that would be deleted. Nothing is deleted.'),
    },
    {
      title: 'Forget',
      description:
        'Permanently deletes facts and other entries, including their history and their bytes on disk. This cannot be undone, so use `dry_run` first if you are not sure.',
    },
  ),
);
export type ForgetInput = SchemaOutput<typeof ForgetInput>;

export const ForgetReceipt = lazy(() =>
  z.object({
    scope: z.string().describe('The scope as it was sent. If the scope is a category, it is in lower case.'),
    deleted: count(
      'Number of deleted entries. Each entry is counted once. In a dry run, the number of entries that would be deleted.',
    ),
    purged: z.boolean().describe('Whether all bytes of the entries are removed from the database files.'),
    reason: z
      .literal('database_copies')
      .exactOptional()
      .describe('Present if a database server can still have the sealed bytes in its pages, its log or its copies.'),
    older_backups: count('Number of backups and other copies that may contain the sealed entries. A restore deletes them again.'),
    undo: z
      .string()
      .exactOptional()
      .describe(
        'Value with which the window can undo this forget operation within a few seconds. Present only in responses to the window, and only for a single fact.',
      ),
    dry_run: z.literal(true).exactOptional().describe('Present if this was a dry run, so nothing was deleted.'),
  }),
);
export type ForgetReceipt = SchemaOutput<typeof ForgetReceipt>;

export const UndoForgetInput = lazy(() =>
  inputObject(
    {
      undo: z
        .string({ error: 'must be text; send the `undo` value from the response to the forget request' })
        .regex(/^[0-9a-f]{32}$/, { error: 'must be the `undo` value from the response to the forget request; send it unchanged' })
        .describe('The `undo` value from the response to the forget request.'),
    },
    {
      title: 'Undo a forget',
      description:
        'Restores a fact that the window has just forgotten, with its author, times and history. Works only for a few seconds.',
    },
  ),
);
export type UndoForgetInput = SchemaOutput<typeof UndoForgetInput>;
