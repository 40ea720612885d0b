import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../contract/failure.ts';
import type { OperationInput, OperationOutput } from '../../contract/operations.ts';
import { type Caller, namespaceOf } from '../access/caller.ts';
import { HookUse } from '../access/hook-use.ts';
import { type BriefFact, projectOf } from '../brief/fact-place.ts';
import type { ToldFacts } from '../brief/receipts.ts';
import { PROMPT_FACTS, selectForPrompt, selectForSession } from '../brief/select.ts';
import { joinBriefs, tagHint, writeBrief } from '../brief/text.ts';
import { Capture } from '../capture/capture.ts';
import { isMarked } from '../inbox/marks.ts';
import { type Moment, noteOf } from './activity.ts';
import type { Memory, MemoryDeps } from './memory.ts';

/** Maximum milliseconds that a brief waits for the meaning of its prompt. A hook has little time, and words then decide alone. */
const MEANING_MS = 150;
/** If a hook asks so soon after the MCP server has put a brief into its instructions, its session was told the facts of that brief. */
const GREETING_MS = 30_000;
/** Two hooks of one client that ask about the same prompt, or to repeat the same session, ask at the same time. */
const TWIN_HOOK_MS = 10_000;
/** Maximum facts to tell again after a session has lost its context. It is more than a brief can show. */
const REPEATED = 20;
/** Maximum bytes of a brief in the instructions of the MCP server. Claude Code shows 4,096 characters of the instructions. */
const GREETING_BYTES = 2800;
/** Clients that show their models nothing of the instructions but the first line, or nothing at all. */
const HIDES_INSTRUCTIONS: ReadonlySet<string> = new Set(['codex', 'openclaw']);
const SILENT = { text: '', keys: [] };

/** A session of a client, as the client names it. */
interface Session {
  readonly id: string;
  readonly facts: ToldFacts;
}

interface Selected {
  readonly forPrompt: readonly BriefFact[];
  readonly forSession: readonly BriefFact[];
}

/**
 * Tells an agent what is worth knowing now, without being asked by its model (R-BRIEF). The prompt is used for this answer only. It is
 * never stored or logged.
 */
export function brief(deps: MemoryDeps): Pick<Memory, 'brief'> {
  const { store, finder, scheduler, tokens, receipts, clock, brief: settings } = deps;
  const hooks = new HookUse(store.vault, tokens, () => store.now());
  const capture = new Capture(deps);

  const select = async (caller: Caller, moment: Moment, { prompt, folder }: OperationInput<'brief'>): Promise<Selected> => {
    const request = {
      namespace: namespaceOf(caller),
      client: caller.client,
      project: projectOf(folder),
      yieldTurn: () => scheduler.yieldTurn(caller.subject),
    };
    // A prompt does not wait until the model is loaded. The next one finds it loaded.
    if (isHook(caller)) finder.warmMeaning(request.namespace);
    const [forPrompt, forSession] = await Promise.all([
      prompt === undefined
        ? []
        : selectForPrompt(
            { finder, store },
            { ...request, prompt, comparesMeanings: finder.isMeaningWarm, signal: AbortSignal.timeout(MEANING_MS) },
          ),
      moment === 'prompt' ? [] : selectForSession({ finder, store }, request),
    ]);
    // Of the facts for a prompt alone, those that the session was told give way to the next ones.
    return { forPrompt: moment === 'prompt' ? forPrompt : forPrompt.slice(0, PROMPT_FACTS), forSession };
  };

  /** Reads the facts that a session was told, last told first, because its context no longer holds them. */
  const readAgain = async (caller: Caller, { told }: ToldFacts): Promise<BriefFact[]> => {
    const space = store.space(namespaceOf(caller), 'fact');
    const keys = [...told.keys()].slice(-REPEATED).toReversed();
    const entries = await Promise.all(keys.map((key) => space.get(key)));
    return entries.filter((entry) => entry !== undefined).map(({ author, ...fact }) => ({ ...fact, ...author }));
  };

  /** In a memory without facts, no index is built for a brief. */
  const isEmpty = async (caller: Caller): Promise<boolean> => (await store.space(namespaceOf(caller), 'fact').count()) === 0;

  const sessionOf = async (caller: Caller, moment: Moment, name: string | undefined): Promise<Session | undefined> => {
    if (name === undefined) {
      // The test of a connection asks as a hook without a session. No model read the greeting of that test.
      if (isHook(caller)) receipts.takeGreeting(caller, Infinity);
      return undefined;
    }
    const id = sessionIdOf(caller.client, name, moment);
    const facts = await receipts.session(caller.subject, id);
    if (facts.told.size === 0 && moment !== 'turn') {
      const greeted = receipts.takeGreeting(caller, clock.steady() - GREETING_MS);
      for (const [key, at] of greeted ?? []) facts.told.set(key, at);
    }
    return { id, facts };
  };

  /** Adds an activity row about what was put before the agent. Errors are ignored, because the brief was given. */
  const record = (caller: Caller, moment: Moment, session: Session | undefined, keys: string[]): void => {
    if (!settings.receipts || keys.length === 0) return;
    const details = { keys, moment, ...(session && { session: session.id }) };
    store.recordActivity(caller.subject, noteOf(caller, 'brief', details)).catch(() => undefined);
  };

  /**
   * Writes the brief and remembers what it tells. Does not wait for anything, so that of two hooks that ask at the same time only one
   * tells a fact.
   */
  const answer = (
    caller: Caller,
    moment: Moment,
    input: OperationInput<'brief'>,
    { session, forPrompt, forSession }: Selected & { readonly session: Session | undefined },
  ): OperationOutput<'brief'> => {
    const { folder, prompt } = input;
    const now = store.now();
    if (session && moment === 'prompt' && isSamePrompt(session.facts, prompt ?? '', clock.steady())) return SILENT;
    if (session && moment === 'repeat' && isSecondRepeat(session.facts, clock.steady())) return SILENT;
    const isTold = session && (moment === 'start' || moment === 'prompt') ? toldBefore(session.facts, moment) : () => false;
    const hits = forPrompt.filter((fact) => !isTold(fact)).slice(0, PROMPT_FACTS);
    const rest = new Map(forSession.filter((fact) => !isTold(fact)).map((fact) => [fact.key, fact]));
    const project = moment === 'prompt' ? undefined : projectOf(folder);
    const bytes = isGreeting(caller, input) ? Math.min(settings.bytes, GREETING_BYTES) : settings.bytes;
    const ending = project === undefined ? undefined : tagHint(project);
    // A client that keeps no brief gets both at each turn, each within its limit, as other clients get them one after the other.
    const first = writeBrief(hits, { bytes, now });
    for (const { key } of first.shown) rest.delete(key);
    const second = writeBrief([...rest.values()], { bytes, now, ending });
    const text = joinBriefs(first.text, second.text);
    const shown = [...first.shown, ...second.shown];
    // At each turn, a client tells its model the same facts. They count once in a session.
    const counted = moment === 'turn' && session ? shown.filter(({ key }) => !session.facts.told.has(key)) : shown;
    if (session && moment === 'repeat') session.facts.told.clear();
    if (session && moment !== 'prompt') session.facts.startedAt = now;
    for (const fact of shown) if (session) tell(session.facts, fact, now);
    record(
      caller,
      moment,
      session,
      counted.map(({ key }) => key),
    );
    if (isGreeting(caller, input))
      receipts.greet(caller, clock.steady(), new Map(shown.map((fact) => [fact.key, toldAt(fact, now)])));
    return { text, keys: shown.map(({ key }) => key) };
  };

  const tellWhatMatters = async (caller: Caller, input: OperationInput<'brief'>, signal: AbortSignal | undefined) => {
    const { prompt, session: name, repeat = false } = input;
    const moment: Moment = prompt === undefined ? (repeat ? 'repeat' : 'start') : repeat ? 'turn' : 'prompt';
    if (isHook(caller) && name !== undefined && moment !== 'prompt') hooks.record(caller);
    if (
      settings.bytes === 0 ||
      (await isEmpty(caller)) ||
      (isGreeting(caller, input) && (HIDES_INSTRUCTIONS.has(caller.client) || (await hooks.speaksFor(caller))))
    )
      return SILENT;
    const session = await sessionOf(caller, moment, name);
    const again = session && moment === 'repeat' ? await readAgain(caller, session.facts) : [];
    const { forPrompt, forSession } = await select(caller, moment, input);
    // A hook that has given up will not show the answer, so the session was not told. If other work delayed this brief, the end of the
    // hook's connection is read in the next turn of the event loop, and reported in the turn after it.
    await nextTurn();
    await nextTurn();
    if (signal?.aborted) throw new Failure('cancelled', 'The client ended the request before the brief was ready.');
    const isShown = (fact: BriefFact): boolean => !isMarked(fact);
    const selected = { forPrompt: forPrompt.filter(isShown), forSession: [...again, ...forSession].filter(isShown) };
    return answer(caller, moment, input, { session, ...selected });
  };

  return {
    async brief(caller, input, { signal }) {
      try {
        return await tellWhatMatters(caller, input, signal);
      } finally {
        // Only a hook sends what the person said. The person said it even if the brief is empty or late.
        if (isHook(caller)) capture.readLater(caller, input);
      }
    },
  };
}

/** Whether the caller is the hook of an agent, whose token allows nothing but briefs. */
const isHook = ({ scopes }: Caller): boolean => scopes.size === 1 && scopes.has('memory:brief');

/** Whether the brief is for the instructions of the MCP server, which no client asks for itself. */
const isGreeting = ({ transport }: Caller, { session }: OperationInput<'brief'>): boolean =>
  transport === 'mcp' && session === undefined;

/**
 * Returns a short id of a session. Turns of a client that keeps no brief in its context have an id of their own, so that they never
 * count as what the session was told.
 */
const sessionIdOf = (client: string, session: string, moment: Moment): string =>
  hash('sha256', JSON.stringify([client, session, ...(moment === 'turn' ? [moment] : [])])).slice(0, 8);

/** Adds a fact to those that a session was told, as the last one. */
function tell({ told }: ToldFacts, fact: BriefFact, now: number): void {
  told.delete(fact.key);
  told.set(fact.key, toldAt(fact, now));
}

/** Returns when a fact was told. The time of a fact can be ahead of the clock by some milliseconds. */
const toldAt = ({ updatedAt }: BriefFact, now: number): number => Math.max(now, updatedAt);

/**
 * Returns whether a session was told a fact that has not changed since. A session that got the brief for its start is told only facts
 * that are newer, if it asks for that brief again.
 */
const toldBefore =
  ({ told, startedAt }: ToldFacts, moment: Moment) =>
  ({ key, updatedAt }: BriefFact): boolean =>
    updatedAt <= Math.max(told.get(key) ?? -Infinity, moment === 'start' ? (startedAt ?? -Infinity) : -Infinity);

/** Whether a session just asked about the same prompt. Remembers the prompt as a digest, in RAM only. */
function isSamePrompt(facts: ToldFacts, prompt: string, now: number): boolean {
  const digest = hash('sha256', prompt);
  const isSame = facts.prompt?.digest === digest && now - facts.prompt.at < TWIN_HOOK_MS;
  facts.prompt = { digest, at: now };
  return isSame;
}

/** Whether another hook of the session just asked to repeat what the session was told. */
function isSecondRepeat(facts: ToldFacts, now: number): boolean {
  if (facts.repeatedAt !== undefined && now - facts.repeatedAt < TWIN_HOOK_MS) return true;
  facts.repeatedAt = now;
  return false;
}
