import { hash } from 'node:crypto';
import type { OperationInput } from '../../contract/operations.ts';
import { type Caller, namespaceOf } from '../access/caller.ts';
import type { CaptureChoices } from '../access/capture-choices.ts';
import { projectOf } from '../brief/fact-place.ts';
import type { Propose } from '../inbox/propose.ts';
import type { FairScheduler } from '../operations/fair-scheduler.ts';
import type { Finder } from '../search/finder.ts';
import type { MemoryStore } from '../store/store.ts';
import { captureFrom, type CapturedStatement } from './rules.ts';
import { slug } from './topics.ts';

interface Deps {
  readonly store: MemoryStore;
  readonly finder: Finder;
  readonly scheduler: FairScheduler;
  readonly captures: CaptureChoices;
  readonly propose: Propose;
}

/** Proposals that are remembered, so that the same statement is not proposed again after the owner dropped or changed it. */
const REMEMBERED = 1000;
/** Facts with the most words in common that are compared with a statement. */
const COMPARED = 5;
/** Share of words that a statement and a fact that says the same have in common. */
const SAME_WORDS = 0.8;

/**
 * Proposes lasting statements of a prompt as facts (R-CAPT), if the owner chose this for the client. Keeps nothing of the prompt but
 * the proposals.
 */
export class Capture {
  readonly #deps: Deps;
  /** Digests of the statements that were proposed since the program started, oldest first. */
  readonly #proposed = new Set<string>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Reads a prompt of a hook after its brief was sent. Errors are ignored, because no client waits for the result. */
  readLater(caller: Caller, { prompt, folder }: OperationInput<'brief'>): void {
    if (prompt === undefined) return;
    setImmediate(() => void this.#read(caller, prompt, projectOf(folder)).catch(() => undefined));
  }

  async #read(caller: Caller, prompt: string, project: string | undefined): Promise<void> {
    const { captures, propose } = this.#deps;
    if (!(await captures.of(caller.client)).capture) return;
    const statements = captureFrom(prompt, project).filter((statement) => this.#remember(caller.subject, statement));
    const unknown: CapturedStatement[] = [];
    for (const statement of statements) if (!(await this.#isKnown(caller, statement))) unknown.push(statement);
    await propose(caller, unknown);
  }

  /** Returns false if the statement was proposed before, by whatever client. Of two hooks that send one prompt, one proposes. */
  #remember(subject: string, { key, value }: CapturedStatement): boolean {
    const digest = hash('sha256', JSON.stringify([subject, key, value]));
    if (this.#proposed.has(digest)) return false;
    this.#proposed.add(digest);
    const [oldest] = this.#proposed.size > REMEMBERED ? this.#proposed : [];
    if (oldest !== undefined) this.#proposed.delete(oldest);
    return true;
  }

  /** Whether a fact says the same in nearly the same words. */
  async #isKnown(caller: Caller, { key, value }: CapturedStatement): Promise<boolean> {
    const { store, finder, scheduler } = this.#deps;
    const namespace = namespaceOf(caller);
    const same = await store.space(namespace, 'fact').get(key);
    if (same && isNearlySame(same.value, value)) return true;
    const { found } = await finder.find(namespace, {
      texts: [value],
      mode: 'words',
      limit: COMPARED,
      yieldTurn: () => scheduler.yieldTurn(caller.subject),
    });
    return found.some(({ fact }) => isNearlySame(fact.value, value));
  }
}

function isNearlySame(one: string, other: string): boolean {
  const [words, others] = [wordsOf(one), wordsOf(other)];
  const common = words.intersection(others).size;
  return common >= SAME_WORDS * words.union(others).size;
}

const wordsOf = (text: string): Set<string> => new Set(slug(text).split('-'));
