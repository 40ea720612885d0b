import type { ActivityNote } from '../store.ts';
import { UncertainCommit } from './server-transaction.ts';

/** Maximum activity notes that wait in RAM for the key. When another note is added, the oldest is dropped. */
const MAX_NOTES = 1000;

export interface PendingNote {
  readonly subject: string;
  readonly note: ActivityNote;
  readonly at: number;
  /** The commit that has perhaps stored the note. */
  readonly commit?: UncertainCommit;
}

interface Steps {
  /** Whether a commit whose answer was lost may have taken place. */
  readonly mayBeCommitted: (commit: UncertainCommit) => Promise<boolean>;
  readonly record: (notes: readonly PendingNote[]) => Promise<void>;
}

/** Activity notes that wait in RAM until they can be written. */
export class PendingNotes {
  readonly #notes: PendingNote[] = [];

  add(note: PendingNote): void {
    this.#notes.push(note);
    if (this.#notes.length > MAX_NOTES) this.#notes.shift();
  }

  /**
   * Writes the notes. If writing fails, they stay pending. Notes of an uncertain commit are written again only if that commit did not
   * take place. Returns the subjects whose notes were written.
   */
  async write({ mayBeCommitted, record }: Steps): Promise<ReadonlySet<string>> {
    const notes = this.#notes.splice(0);
    let pending = notes;
    try {
      for (const commit of new Set(notes.flatMap((note) => note.commit ?? []))) {
        const isStored = await mayBeCommitted(commit);
        const others = pending.filter((note) => note.commit !== commit);
        const again = pending.filter((note) => note.commit === commit).map(({ subject, note, at }) => ({ subject, note, at }));
        pending = isStored ? others : [...again, ...others];
      }
      if (pending.length > 0) await record(pending);
    } catch (error) {
      this.#notes.unshift(...(error instanceof UncertainCommit ? pending.map((note) => ({ ...note, commit: error })) : pending));
      throw error;
    }
    return new Set(notes.map(({ subject }) => subject));
  }
}
