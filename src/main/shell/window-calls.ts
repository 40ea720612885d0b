import * as z from 'zod';
import { Failure } from '../../contract/failure.ts';
import { explainIssue, lazy, type SchemaOutput } from '../../contract/schema.ts';
import { isSubject } from '../../contract/token.ts';
import type { DesktopCalls } from '../../contract/window.ts';
import type { Caller } from '../../core/access/caller.ts';
import type { CallContext } from '../../core/operations/call-context.ts';
import type { Perform } from '../../core/operations/perform.ts';
import { type Clock, systemClock } from '../../core/time/clock.ts';
import { windowCaller } from '../../listeners/window/window-result.ts';
import { desktopConsent, type ConsentQuestion } from './consent.ts';

interface Deps {
  readonly perform: Perform;
  /** What only the desktop knows. */
  readonly desktop: {
    readonly [Name in Exclude<keyof DesktopCalls, 'cancel' | 'unsaved' | 'chooseAtLogin'>]: () => Promise<DesktopCalls[Name]>;
  };
  readonly chooseAtLogin: (choice: AtLogin) => DesktopCalls['atLogin'];
  /** Whether the page now holds what would be lost with it. */
  readonly setUnsaved: (unsaved: boolean) => void;
  /** Asks the owner, in the system's own words. */
  readonly askOwner: (question: ConsentQuestion) => Promise<boolean>;
  readonly clock?: Clock;
}

const RESUMING: ConsentQuestion = {
  message: 'Resume access for agents?',
  detail: 'Agents can read and write this memory again.',
  yes: 'Resume',
};

const NOTHING = lazy(() => z.strictObject({}, { error: 'must be an empty object; send {}' }));

/** What a call may be named by; longer is no word of ours. */
const Word = lazy(() => z.string().min(1).max(64).optional());
const CANCEL = lazy(() =>
  z.strictObject({ word: Word().unwrap() }, { error: 'must say which call is given up; send the word that it brought' }),
);
const UNSAVED = lazy(() =>
  z.strictObject(
    { unsaved: z.boolean({ error: 'must be true or false' }) },
    { error: 'must say whether something is not saved; send unsaved' },
  ),
);

const AtLogin = lazy(() =>
  z.strictObject(
    {
      starts: z.boolean({ error: 'must be true or false' }).optional(),
      hidden: z.boolean({ error: 'must be true or false' }).optional(),
    },
    { error: 'must say what is chosen; send starts, hidden or both' },
  ),
);
export type AtLogin = SchemaOutput<typeof AtLogin>;

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
export type WindowCall = (subject: unknown, name: unknown, input: unknown, word?: unknown) => Promise<unknown>;

/** What the window asks is parsed like what any other asks, and goes through the same door. */
export function createWindowCalls({
  perform,
  desktop,
  chooseAtLogin,
  setUnsaved: holdsUnsaved,
  askOwner: agrees,
  clock = systemClock,
}: Deps): WindowCall {
  const consent = desktopConsent({ perform, clock, askOwner: agrees });
  /** Calls that may be given up, by their words. */
  const underWay = new Map<string, AbortController>();

  return async (subject, name, input, given) => {
    const word = Word().safeParse(given);
    if (!isSubject(subject) || typeof name !== 'string' || !word.success)
      throw new Failure('invalid_input', 'A call must say whose memory is open and what is asked; send both.');
    if (isDesktopCall(name)) return askDesktop(name, input);
    const owner = windowCaller(subject);
    if (word.data === undefined) return ask(owner, name, input);
    if (underWay.has(word.data)) throw new Failure('invalid_input', 'A call with this word is under way; send another word.');
    const givenUp = new AbortController();
    underWay.set(word.data, givenUp);
    try {
      return await ask(owner, name, input, { signal: givenUp.signal });
    } finally {
      underWay.delete(word.data);
    }
  };

  async function askDesktop(name: keyof DesktopCalls, input: unknown): Promise<unknown> {
    const parsed = desktopCalls[name]().safeParse(input);
    if (!parsed.success) throw new Failure('invalid_input', explainIssue(parsed.error, input), { cause: parsed.error });
    if (name === 'cancel') {
      const call = underWay.get(CANCEL().parse(input).word);
      call?.abort();
      return { cancelled: call !== undefined };
    }
    if (name === 'chooseAtLogin') return chooseAtLogin(AtLogin().parse(input));
    if (name === 'resumeListening') return resumeListening();
    if (name !== 'unsaved') return desktop[name]();
    const told = UNSAVED().parse(input);
    holdsUnsaved(told.unsaved);
    return told;
  }

  /** Only the owner resumes what the owner paused; trying a taken port again lets nobody in who was shut out. */
  async function resumeListening(): Promise<unknown> {
    const { at } = await desktop.listening();
    if (at === 'paused' && !(await agrees(RESUMING))) throw new Failure('declined', 'You did not agree, so nothing was done.');
    return desktop.resumeListening();
  }

  function ask(owner: Caller, name: string, input: unknown, during?: CallContext): Promise<unknown> {
    return perform(owner, name, input, { ...during, consent });
  }
}
