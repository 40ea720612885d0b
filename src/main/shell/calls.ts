import * as z from 'zod';
import { explain } from '../../contract/explain.ts';
import { Failure } from '../../contract/failure.ts';
import { type Scope, spellScope } from '../../contract/forget.ts';
import { later, type Of } from '../../contract/later.ts';
import type { Request } from '../../contract/operations.ts';
import { isSubject } from '../../contract/token.ts';
import type { DesktopCalls } from '../../contract/window.ts';
import type { Caller } from '../../core/caller.ts';
import type { During } from '../../core/during.ts';
import type { Perform } from '../../core/perform.ts';
import { askedBy } from '../../listeners/window/crossing.ts';
import { type Going, type Question, questionBefore } from './consent.ts';

interface Deps {
  readonly perform: Perform;
  /** What only the desktop knows. */
  readonly desktop: {
    readonly [Name in Exclude<keyof DesktopCalls, 'cancel' | 'unsaved' | 'chooseAtLogin'>]: () => Promise<DesktopCalls[Name]>;
  };
  readonly chooseAtLogin: (choice: AtLogin) => DesktopCalls['atLogin'];
  /** Whether the page now holds what would be lost with it. */
  readonly holdsUnsaved: (unsaved: boolean) => void;
  /** Asks the owner, in the system's own words. */
  readonly agrees: (question: Question) => Promise<boolean>;
}

/** Facts that are named before they go. */
const SHOWN = 5;

const NOTHING = later(() => z.strictObject({}, { error: 'must be an empty object; send {}' }));

/** What a call may be named by; longer is no word of ours. */
const Word = later(() => z.string().min(1).max(64).optional());
const CANCEL = later(() =>
  z.strictObject({ word: Word().unwrap() }, { error: 'must say which call is given up; send the word that it brought' }),
);
const UNSAVED = later(() =>
  z.strictObject(
    { unsaved: z.boolean({ error: 'must be true or false' }) },
    { error: 'must say whether something is not saved; send unsaved' },
  ),
);

const AtLogin = later(() =>
  z.strictObject(
    {
      starts: z.boolean({ error: 'must be true or false' }).optional(),
      hidden: z.boolean({ error: 'must be true or false' }).optional(),
    },
    { error: 'must say what is chosen; send starts, hidden or both' },
  ),
);
export type AtLogin = Of<typeof AtLogin>;

/** What only the desktop can be asked, and with what: beside the table of operations, because no other surface has it. */
const desktopCalls = {
  cancel: CANCEL,
  listening: NOTHING,
  resumeListening: NOTHING,
  showBundle: NOTHING,
  atLogin: NOTHING,
  chooseAtLogin: AtLogin,
  unsaved: UNSAVED,
} as const satisfies Record<keyof DesktopCalls, () => z.ZodType>;

const isDesktopCall = (name: string): name is keyof DesktopCalls => Object.hasOwn(desktopCalls, name);

/** Whatever a page of ours may say. */
export type Calls = (subject: unknown, name: unknown, input: unknown, word?: unknown) => Promise<unknown>;

/** What the window asks is parsed like what any other asks, and goes through the same door. */
export function callsOf({ perform, desktop, chooseAtLogin, holdsUnsaved, agrees }: Deps): Calls {
  /** Calls that may be given up, by their words. */
  const underWay = new Map<string, AbortController>();

  return async (subject, name, input, given) => {
    const word = Word().safeParse(given);
    if (!isSubject(subject) || typeof name !== 'string' || !word.success)
      throw new Failure('invalid_input', 'A call must say whose memory is open and what is asked; send both.');
    if (isDesktopCall(name)) return askDesktop(name, input);
    const [owner, operation] = askedBy(subject, name);
    if (word.data === undefined) return ask(owner, operation, input);
    if (underWay.has(word.data)) throw new Failure('invalid_input', 'A call with this word is under way; send another word.');
    const givenUp = new AbortController();
    underWay.set(word.data, givenUp);
    try {
      return await ask(owner, operation, input, { signal: givenUp.signal });
    } finally {
      underWay.delete(word.data);
    }
  };

  async function askDesktop(name: keyof DesktopCalls, input: unknown): Promise<unknown> {
    const parsed = desktopCalls[name]().safeParse(input);
    if (!parsed.success) throw new Failure('invalid_input', explain(parsed.error, input), { cause: parsed.error });
    if (name === 'cancel') {
      const call = underWay.get(CANCEL().parse(input).word);
      call?.abort();
      return { cancelled: call !== undefined };
    }
    if (name === 'chooseAtLogin') return chooseAtLogin(AtLogin().parse(input));
    if (name !== 'unsaved') return desktop[name]();
    const told = UNSAVED().parse(input);
    holdsUnsaved(told.unsaved);
    return told;
  }

  async function ask(owner: Caller, name: string, input: unknown, during?: During): Promise<unknown> {
    const question = await questionBefore(name, input, {
      forget: (scope) => wouldGo(owner, scope),
      undo: (of) => perform(owner, 'undo', { ...of, dry_run: true }),
      ollama: async () => (await perform(owner, 'embeddings', {})).ollama,
    });
    if (question && !(await agrees(question))) throw new Failure('insufficient_scope', 'You did not agree, so nothing was done.');
    return perform(owner, name, input, during);
  }

  async function wouldGo(owner: Caller, scope: Scope): Promise<Going> {
    const forgotten = await perform(owner, 'forget', { scope: spellScope(scope), dry_run: true });
    return { count: forgotten.deleted, backups: forgotten.older_backups, keys: await firstKeys(owner, scope) };
  }

  async function firstKeys(owner: Caller, scope: Scope): Promise<readonly string[]> {
    const filter = filterOf(scope);
    if (!filter) return [];
    // What stands in clear is forgotten without the key too, and then nothing can be named.
    const listed = await perform(owner, 'list', { ...filter, limit: SHOWN }).catch(() => undefined);
    return listed?.facts.map(({ key }) => key) ?? [];
  }
}

/** How facts that a forget takes are listed; undefined where it takes other things. */
function filterOf(scope: Scope): Pick<Request<'list'>, 'prefix' | 'category' | 'tag' | 'client'> | undefined {
  switch (scope.kind) {
    case 'all':
    case 'facts':
      return {};
    case 'prefix':
    case 'category':
    case 'tag':
    case 'client':
      return { [scope.kind]: scope.name };
    case 'key':
    case 'packs':
    case 'pipelines':
    case 'pack':
    case 'pipeline':
      return undefined;
  }
}
