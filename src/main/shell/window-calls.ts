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
  /** Calls that only the desktop supports. */
  readonly desktop: {
    readonly [Name in Exclude<keyof DesktopCalls, 'cancel' | 'unsaved' | 'chooseAtLogin'>]: () => Promise<DesktopCalls[Name]>;
  };
  readonly chooseAtLogin: (choice: AtLogin) => DesktopCalls['atLogin'];
  /** Receives whether the page contains unsaved text. */
  readonly setUnsaved: (unsaved: boolean) => void;
  /** Asks the owner in a system dialog. */
  readonly askOwner: (question: ConsentQuestion) => Promise<boolean>;
  readonly clock?: Clock;
}

const RESUME: ConsentQuestion = {
  message: 'Resume agent access?',
  detail: 'Agents can read and write this memory again.',
  yes: 'Resume',
};

const NOTHING = lazy(() => z.strictObject({}, { error: 'must be an empty object; send {}' }));

/** The id of a call, with which it can be cancelled. */
const CallId = lazy(() => z.string().min(1).max(64).optional());
const CANCEL = lazy(() => z.strictObject({ word: CallId().unwrap() }, { error: 'must name the call to cancel; send its word' }));
const UNSAVED = lazy(() =>
  z.strictObject(
    { unsaved: z.boolean({ error: 'must be true or false' }) },
    { error: 'must say whether there is unsaved text; send unsaved' },
  ),
);

const AtLogin = lazy(() =>
  z.strictObject(
    {
      starts: z.boolean({ error: 'must be true or false' }).optional(),
      hidden: z.boolean({ error: 'must be true or false' }).optional(),
    },
    { error: 'must contain a choice; send starts, hidden or both' },
  ),
);
export type AtLogin = SchemaOutput<typeof AtLogin>;

/** Calls of the desktop and their inputs. Not in the operations table, because no other surface has them. */
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

/** A call of the page. */
export type WindowCall = (subject: unknown, name: unknown, input: unknown, callId?: unknown) => Promise<unknown>;

/** Handles the window's calls. Operations run like those of any other caller, with the desktop's consent dialogs. */
export function createWindowCalls({
  perform,
  desktop,
  chooseAtLogin,
  setUnsaved,
  askOwner,
  clock = systemClock,
}: Deps): WindowCall {
  const consent = desktopConsent({ perform, clock, askOwner });
  /** Running calls that can be cancelled, by their ids. */
  const running = new Map<string, AbortController>();

  return async (subject, name, input, givenId) => {
    const callId = CallId().safeParse(givenId);
    if (!isSubject(subject) || typeof name !== 'string' || !callId.success)
      throw new Failure('invalid_input', 'A call must contain the subject of a memory and the name of an operation; send both.');
    if (isDesktopCall(name)) return askDesktop(name, input);
    const owner = windowCaller(subject);
    if (callId.data === undefined) return ask(owner, name, input);
    if (running.has(callId.data)) throw new Failure('invalid_input', 'A call with this id is running; send another id.');
    const cancellation = new AbortController();
    running.set(callId.data, cancellation);
    try {
      return await ask(owner, name, input, { signal: cancellation.signal });
    } finally {
      running.delete(callId.data);
    }
  };

  async function askDesktop(name: keyof DesktopCalls, input: unknown): Promise<unknown> {
    const parsed = desktopCalls[name]().safeParse(input);
    if (!parsed.success) throw new Failure('invalid_input', explainIssue(parsed.error, input), { cause: parsed.error });
    if (name === 'cancel') {
      const call = running.get(CANCEL().parse(input).word);
      call?.abort();
      return { cancelled: call !== undefined };
    }
    if (name === 'chooseAtLogin') return chooseAtLogin(AtLogin().parse(input));
    if (name === 'resumeListening') return resumeListening();
    if (name !== 'unsaved') return desktop[name]();
    const unsaved = UNSAVED().parse(input);
    setUnsaved(unsaved.unsaved);
    return unsaved;
  }

  /** Asks the owner only if the owner had paused agents. Retrying a failed port gives no one new access. */
  async function resumeListening(): Promise<unknown> {
    const { at } = await desktop.listening();
    if (at === 'paused' && !(await askOwner(RESUME))) throw new Failure('declined', 'You did not agree, so nothing was done.');
    return desktop.resumeListening();
  }

  function ask(owner: Caller, name: string, input: unknown, context?: CallContext): Promise<unknown> {
    return perform(owner, name, input, { ...context, consent });
  }
}
