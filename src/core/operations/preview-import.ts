import { setImmediate as nextTurn } from 'node:timers/promises';
import { CATEGORY } from '../../contract/categories.ts';
import { Failure } from '../../contract/failure.ts';
import type { PreviewedFact, SkippedEntry } from '../../contract/import-preview.ts';
import { PAGE } from '../../contract/limits.ts';
import { explainIssue } from '../../contract/schema.ts';
import { ImportLine } from '../../contract/transfer.ts';
import { namespaceOf } from '../access/caller.ts';
import { requireKey } from '../crypto/require-key.ts';
import { type ImportEntry, limitEntries } from '../import/import-entry.ts';
import { importKey, comparableText } from '../import/naming.ts';
import { sourceReaders, detectSource } from '../import/source.ts';
import type { EntryCursor, Space } from '../store/store.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { findSecret, refuseSecrets } from './secret-guard.ts';

/** Number of entries that are checked in one turn of the event loop. */
const SLICE = 250;
/** Maximum characters that are shown of an entry that cannot be imported. */
const EXCERPT = 120;

/** Returns the facts that an import from another program would create. Does not write anything. */
export const previewImport = ({ store, secrets }: MemoryDeps): Pick<Memory, 'previewImport'> => ({
  async previewImport(caller, { text, from, name, first_line: first, category, ttl_seconds: ttl }) {
    const source = from ?? detectSource(text, name);
    const { entries: found, unusable } = sourceReaders[source](text);
    limitEntries(found.length + unusable.length);
    const candidates = found.map((entry) => ({ entry, key: importKey(source, entry), comparable: comparableText(entry.value) }));
    const known = await knownIn(store.space(namespaceOf(caller), 'fact'), candidates);
    const firstLines = new Map<string, number>();
    const facts: PreviewedFact[] = [];
    const leftOut: SkippedEntry[] = unusable.map(({ line, text: entry, message }) =>
      skipped(line, entry, { why: 'no_fact', message }),
    );
    for (const [index, { entry, key, comparable }] of candidates.entries()) {
      if (index % SLICE === SLICE - 1) await nextTurn();
      const fact = {
        key,
        value: entry.value,
        category: category ?? entry.category ?? CATEGORY.default,
        tags: [...entry.tags],
        ttl_seconds: ttl,
      };
      const reason = whyKnown(key, comparable) ?? whyInvalid(fact);
      if (!firstLines.has(comparable)) firstLines.set(comparable, entry.line);
      if (reason) leftOut.push(skipped(entry.line, entry.value, reason));
      else facts.push({ line: entry.line, ...fact, ...withNote(refuseSecrets(secrets, fact)) });
      known.keys.add(key);
    }
    // The memory may have been locked in the meantime, and the reasons contain keys of stored facts.
    requireKey(store);
    return { from: source, facts: withFileLines(facts), left_out: withFileLines(leftOut) };

    function whyKnown(key: string, comparable: string): Reason | undefined {
      const line = firstLines.get(comparable);
      if (line !== undefined) return { why: 'repeated', message: `The same text is already on line ${line + first - 1}.` };
      const storedKey = known.keysByText.get(comparable);
      if (storedKey !== undefined) return { why: 'known', message: `The same text is already stored, as ${storedKey}.` };
      if (!known.keys.has(key)) return undefined;
      return {
        why: 'changed',
        message: `This entry was imported before as ${key}. That fact was changed after the import, so it is not replaced.`,
      };
    }

    function whyInvalid(fact: object): Reason | undefined {
      const { success, data, error } = ImportLine().safeParse(fact);
      if (!success) return { why: 'invalid', message: explainIssue(error) };
      try {
        refuseSecrets(secrets, data);
        return undefined;
      } catch (refusal) {
        if (!(refusal instanceof Failure)) throw refusal;
        return { why: 'secret', message: refusal.message };
      }
    }

    function withFileLines<T extends { line: number }>(all: readonly T[]): T[] {
      return all.map((each) => ({ ...each, line: each.line + first - 1 })).toSorted((one, other) => one.line - other.line);
    }
  },
});

type Reason = Pick<SkippedEntry, 'why' | 'message'>;

/** Describes an entry that is not imported. Omits its text if the text contains a secret. */
const skipped = (line: number, text: string, reason: Reason): SkippedEntry => ({
  line,
  ...(reason.why !== 'secret' && !findSecret(text) && { text: text.trim().slice(0, EXCERPT).toWellFormed() }),
  ...reason,
});

const withNote = (note: string | undefined): { note?: string } => (note === undefined ? {} : { note });

interface Candidate {
  readonly entry: ImportEntry;
  readonly key: string;
  /** The value in a form for comparing it with other entries and facts. */
  readonly comparable: string;
}

/** Finds the stored facts that have the same text as a candidate, and the keys of candidates that are already in use. */
async function knownIn(
  space: Space,
  candidates: readonly Candidate[],
): Promise<{ keysByText: Map<string, string>; keys: Set<string> }> {
  const wanted = {
    texts: new Set(candidates.map(({ comparable }) => comparable)),
    keys: new Set(candidates.map(({ key }) => key)),
  };
  const known = { keysByText: new Map<string, string>(), keys: new Set<string>() };
  let after: EntryCursor | undefined;
  do {
    const { entries, next } = await space.page({ sort: 'oldest', limit: PAGE.max, ...(after && { after }) });
    for (const { key, value } of entries) {
      if (wanted.keys.has(key)) known.keys.add(key);
      const comparable = comparableText(value);
      if (wanted.texts.has(comparable) && !known.keysByText.has(comparable)) known.keysByText.set(comparable, key);
    }
    after = next;
    if (after) await nextTurn();
  } while (after);
  return known;
}
