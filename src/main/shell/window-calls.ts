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
  /** Functions that only the desktop application supports. */
  readonly desktop: {
    readonly [Name in Exclude<keyof DesktopCalls, 'cancel' | 'unsaved' | 'chooseAtLogin'>]: () => Promise<DesktopCalls[Name]>;
  };
  readonly chooseAtLogin: (choice: AtLogin) => DesktopCalls['atLogin'];
  /** Called with true if the page contains unsaved text. */
  readonly setUnsaved: (unsaved: boolean) => void;
  /** Asks the owner in a system dialog. Resolves to true if the owner agrees. */
  readonly askOwner: (question: ConsentQuestion) => Promise<boolean>;
  readonly clock?: Clock;
}

const RESUME: ConsentQuestion = {
  message: 'Resume agent access?',
  detail: 'Agents can read and write this memory again.',
  yes: 'Resume',
};

const NOTHING = lazy(() => z.strictObject({}, { error: 'must be an empty object; send {}' }));

/** Id that the page chooses for a call, so that the page can cancel the call. */
const CallId = lazy(() => z.string().min(1).max(64).optional());
const CANCEL = lazy(() =>
  z.strictObject({ call: CallId().unwrap() }, { error: 'must contain the id of the call to cancel; send `call`' }),
);
const UNSAVED = lazy(() =>
  z.strictObject(
    { unsaved: z.boolean({ error: 'must be true or false' }) },
    { error: 'must report whether there is unsaved text; send `unsaved`' },
  ),
);

const AtLogin = lazy(() =>
  z.strictObject(
    {
      starts: z.boolean({ error: 'must be true or false' }).optional(),
      hidden: z.boolean({ error: 'must be true or false' }).optional(),
    },
    { error: 'must contain a choice; send `starts`, `hidden` or both' },
  ),
);
export type AtLogin = SchemaOutput<typeof AtLogin>;

/**
 * Calls that only the desktop application supports, with their input schemas. Not in the operations table, because no other
 * interface has these calls.
 */
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

/** Handles one call from the page. */
export type WindowCall = (subject: unknown, name: unknown, input: unknown, callId?: unknown) => Promise<unknown>;

/**
 * Creates the handler of the window's calls. Operations run as for every other caller, but the desktop asks for consent in
 * dialogs.
 */
export function createWindowCalls({
  perform,
  desktop,
  chooseAtLogin,
  setUnsaved,
  askOwner,
  clock = systemClock,
}: Deps): WindowCall {
  const consent = desktopConsent({ perform, clock, askOwner });
  /** Running calls that can be cancelled, by call id. */
  const running = new Map<string, AbortController>();

  return async (subject, name, input, givenId) => {
    const callId = CallId().safeParse(givenId);
    if (!isSubject(subject) || typeof name !== 'string' || !callId.success)
      throw new Failure('invalid_input', 'A call must contain the subject of a memory and the name of an operation.');
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
      const call = running.get(CANCEL().parse(input).call);
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

  /**
   * Resumes listening. If the owner had paused agents, asks the owner first. Retrying a failed port needs no question, because it
   * gives agents no new access.
   */
  async function resumeListening(): Promise<unknown> {
    const { at } = await desktop.listening();
    if (at === 'paused' && !(await askOwner(RESUME)))
      throw new Failure('declined', 'You did not agree, so agent access was not resumed.');
    return desktop.resumeListening();
  }

  function ask(owner: Caller, name: string, input: unknown, context?: CallContext): Promise<unknown> {
    return perform(owner, name, input, { ...context, consent });
  }
}
