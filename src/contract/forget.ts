import * as z from 'zod';
import { CategoryField } from './fact-fields.ts';
import { count, flag, inputObject, lazy, type SchemaOutput } from './schema.ts';

const whole = ['all', 'facts', 'packs', 'pipelines'] as const;
const named = ['pack', 'pipeline', 'key', 'prefix', 'category', 'tag', 'client'] as const;

type Whole = (typeof whole)[number];
type Named = (typeof named)[number];

/** Which entries to forget. `name` is the text after the first colon, unchanged, except that a category is lower-cased as in facts. */
export type Scope = { kind: Whole } | { kind: Named; name: string };

const spellings =
  'all, facts, packs, pipelines, pack:<id>, pipeline:<id>, key:<key>, prefix:<text>, category:<name>, tag:<tag> or client:<name>';

const isWhole = (word: string): word is Whole => whole.some((known) => known === word);
const isNamed = (word: string): word is Named => named.some((known) => known === word);

/**
 * Returns undefined for a scope that does not parse exactly: a guess might delete too much. Refuses a lone surrogate too, because
 * in UTF-8 it becomes U+FFFD and would match another fact.
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

/** Only kinds and categories are stored unencrypted. Keys, tags and clients are sealed, so these scopes need the key. */
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

/** An answer of "0 deleted" would look like success to a client that misspelled the category. */
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
          `What to forget: ${spellings}. The text after the colon is matched exactly, except that a category is lower-cased. Use key: for a single fact.`,
        ),
      dry_run: flag().default(false).describe('true only counts the entries that would be deleted.'),
    },
    {
      title: 'Forget',
      description:
        'Permanently deletes facts and other entries, including their history and their bytes on disk. There is no undo: if in doubt, use dry_run first.',
    },
  ),
);
export type ForgetInput = SchemaOutput<typeof ForgetInput>;

export const ForgetReceipt = lazy(() =>
  z.object({
    scope: z.string().describe('The scope as sent, with a category in lower case.'),
    deleted: count('Number of entries deleted, each counted once. With dry_run, the number that would be deleted.'),
    purged: z.boolean().describe('Whether no byte of them is left in the database files.'),
    older_backups: count(
      'Number of copies in the data folder, such as backups, that may still contain the sealed entries. A restore deletes them again.',
    ),
    undo: z
      .string()
      .exactOptional()
      .describe('Handle to undo this forget within a few seconds. Only the window gets it, and only for a single fact.'),
    dry_run: z.literal(true).exactOptional().describe('Present if this was a dry run, so nothing was deleted.'),
  }),
);
export type ForgetReceipt = SchemaOutput<typeof ForgetReceipt>;

export const UndoForgetInput = lazy(() =>
  inputObject(
    {
      undo: z
        .string({ error: 'must be text; send undo from the response of the forget' })
        .regex(/^[0-9a-f]{32}$/, { error: 'must be undo from the response of the forget; send it unchanged' })
        .describe('The value of undo in the response of the forget.'),
    },
    {
      title: 'Undo a forget',
      description: 'Restores one fact with its author, times and history, within seconds after the window forgot it.',
    },
  ),
);
export type UndoForgetInput = SchemaOutput<typeof UndoForgetInput>;
