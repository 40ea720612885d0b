import { setImmediate as nextTurn } from 'node:timers/promises';
import { explainIssue } from '../../contract/explain.ts';
import { Failure } from '../../contract/failure.ts';
import type { PreviewedFact, SkippedEntry } from '../../contract/import-preview.ts';
import { CATEGORY, PAGE } from '../../contract/limits.ts';
import { ImportLine } from '../../contract/transfer.ts';
import { namespaceOf } from '../access/caller.ts';
import { type ImportEntry, limitEntries } from '../import/import-entry.ts';
import { importKey, comparableText } from '../import/naming.ts';
import { sourceReaders, detectSource } from '../import/source.ts';
import type { EntryCursor, Space } from '../store/store.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { findSecret, refuseSecrets } from './secret-guard.ts';

/** Entries that are judged in one go. */
const SLICE = 250;
/** How much of an entry is shown where it becomes no fact. */
const BEGINNING = 120;

/** What other memories hold, looked at before anything of it is imported. */
export const previewImport = ({ store, secrets }: MemoryDeps): Pick<Memory, 'previewImport'> => ({
  async previewImport(caller, { text, from, name, first_line: first, category, ttl_seconds: ttl }) {
    const source = from ?? detectSource(text, name);
    const { entries: found, unusable: left } = sourceReaders[source](text);
    limitEntries(found.length + left.length);
    const candidates = found.map((entry) => ({ entry, key: importKey(source, entry), says: comparableText(entry.value) }));
    const known = await knownIn(store.space(namespaceOf(caller), 'fact'), candidates);
    const lines = new Map<string, number>();
    const facts: PreviewedFact[] = [];
    const leftOut: SkippedEntry[] = left.map(({ line, text: said, message }) => leaving(line, said, { why: 'no_fact', message }));
    for (const [index, { entry, key, says }] of candidates.entries()) {
      // Others get their turn between.
      if (index % SLICE === SLICE - 1) await nextTurn();
      const fact = {
        key,
        value: entry.value,
        category: category ?? entry.category ?? CATEGORY.default,
        tags: [...entry.tags],
        ttl_seconds: ttl,
      };
      const why = familiar(key, says) ?? unfit(fact);
      if (!lines.has(says)) lines.set(says, entry.line);
      if (why) leftOut.push(leaving(entry.line, entry.value, why));
      else facts.push({ line: entry.line, ...fact, ...noted(refuseSecrets(secrets, fact)) });
      known.keys.add(key);
    }
    return { from: source, facts: counted(facts), left_out: counted(leftOut) };

    function familiar(key: string, says: string): Reason | undefined {
      const line = lines.get(says);
      if (line !== undefined) return { why: 'repeated', message: `The same stands on line ${line + first - 1} already.` };
      const under = known.says.get(says);
      if (under !== undefined) return { why: 'known', message: `It is remembered already, as ${under}.` };
      if (!known.keys.has(key)) return undefined;
      return { why: 'changed', message: `It was imported before as ${key}, which says something else by now and stays so.` };
    }

    function unfit(fact: object): Reason | undefined {
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

    function counted<T extends { line: number }>(all: readonly T[]): T[] {
      return all.map((each) => ({ ...each, line: each.line + first - 1 })).toSorted((one, other) => one.line - other.line);
    }
  },
});

type Reason = Pick<SkippedEntry, 'why' | 'message'>;

/** A secret is told by its line alone, wherever in an entry it stands. */
const leaving = (line: number, said: string, reason: Reason): SkippedEntry => ({
  line,
  ...(reason.why !== 'secret' && !findSecret(said) && { text: said.trim().slice(0, BEGINNING).toWellFormed() }),
  ...reason,
});

const noted = (note: string | undefined): { note?: string } => (note === undefined ? {} : { note });

interface Candidate {
  readonly entry: ImportEntry;
  readonly key: string;
  readonly says: string;
}

/** Which of these texts are remembered, under which key, and which of their keys are taken. */
async function knownIn(
  space: Space,
  candidates: readonly Candidate[],
): Promise<{ says: Map<string, string>; keys: Set<string> }> {
  const wanted = { says: new Set(candidates.map(({ says }) => says)), keys: new Set(candidates.map(({ key }) => key)) };
  const known = { says: new Map<string, string>(), keys: new Set<string>() };
  let after: EntryCursor | undefined;
  do {
    const { entries, next } = await space.page({ sort: 'oldest', limit: PAGE.max, ...(after && { after }) });
    for (const { key, value } of entries) {
      if (wanted.keys.has(key)) known.keys.add(key);
      const says = comparableText(value);
      if (wanted.says.has(says) && !known.says.has(says)) known.says.set(says, key);
    }
    after = next;
    if (after) await nextTurn();
  } while (after);
  return known;
}
