import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { type PendingNote, PendingNotes } from '../../../../src/core/store/postgres/pending-notes.ts';
import { UncertainCommit } from '../../../../src/core/store/postgres/server-transaction.ts';
import { aDraft } from '../../../support/store.ts';

const aNote = (key: string): PendingNote => ({ subject: 'me', note: aDraft({ key }), at: 1 });
const uncertain = (change: number): UncertainCommit => new UncertainCommit(change, randomBytes(16), new Error('lost'));
const never = (): Promise<never> => Promise.reject(new Error('No commit is uncertain.'));

/** Writes the notes. Returns the keys of the notes that were sent to the database. */
async function write(
  notes: PendingNotes,
  mayBeCommitted: (commit: UncertainCommit) => Promise<boolean>,
  error?: Error,
): Promise<string[]> {
  const sent: string[] = [];
  const record = async (pending: readonly PendingNote[]): Promise<void> => {
    sent.push(...pending.map(({ note }) => note.key));
    if (error) throw error;
  };
  await notes.write({ mayBeCommitted, record }).catch(() => undefined);
  return sent;
}

test('notes of a commit that did not take place are written again, and the others are not (R-VIEW-05)', async () => {
  const [notes, first, second] = [new PendingNotes(), uncertain(1), uncertain(2)];
  notes.add(aNote('a'));
  expect(await write(notes, never, first)).toEqual(['a']);
  notes.add(aNote('b'));
  // The first commit took place. The second one takes only the other note.
  expect(await write(notes, async (commit) => commit === first, second)).toEqual(['b']);
  expect(await write(notes, async () => false, new Error('refused'))).toEqual(['b']);
  // Now it is certain that the note is not stored.
  expect(await write(notes, never)).toEqual(['b']);
  expect(await write(notes, never)).toEqual([]);
});

test('notes stay pending while the database cannot say whether their commit took place', async () => {
  const [notes, lost] = [new PendingNotes(), uncertain(1)];
  notes.add(aNote('a'));
  await write(notes, never, lost);
  expect(await write(notes, never)).toEqual([]);
  expect(await write(notes, async (commit) => commit !== lost)).toEqual(['a']);
});
