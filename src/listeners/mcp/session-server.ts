import type { ProgressToken, RequestId } from '@modelcontextprotocol/sdk/types.js';
import { asFailure, Failure } from '../../contract/failure.ts';
import type { Caller } from '../../core/access/caller.ts';
import { type CallContext, orAborted } from '../../core/operations/call-context.ts';
import type { Perform } from '../../core/operations/perform.ts';
import type { Clock } from '../../core/time/clock.ts';
import { toToolResult } from '../failure-responses.ts';
import type { LogEvent } from '../route.ts';
import type { Sdk } from './message.ts';
import type { PackTools } from './pack-tools.ts';
import { readResource, requireReadable, requireResource, RESOURCE_LIST } from './resources.ts';
import { ProtocolError } from './rpc.ts';
import type { Params, RequestContext, Session } from './session.ts';
import type { CallToolResult } from './tool-result.ts';
import { type OperationTools, unknownToolFailure } from './tools.ts';

export interface ServerProfile {
  readonly info: { readonly name: string; readonly title: string; readonly version: string };
  readonly instructions: string;
  /** Whether a brief follows the instructions, so that a client without hooks starts with it too (R-BRIEF-10). */
  readonly briefs: boolean;
  readonly tools: OperationTools;
  readonly packs?: PackTools;
  readonly resources: boolean;
}

interface Deps {
  readonly profile: ServerProfile;
  readonly perform: Perform;
  readonly clock: Clock;
  readonly log: (event: LogEvent) => void;
}

type Method = (session: Session, params: Params, context: RequestContext) => Promise<object> | object;

/**
 * Replaces the SDK's validator for client responses, which is slow to load. This server needs no validator: it sends no requests.
 */
const noValidator = {
  getValidator: () => (): never => {
    throw new Failure('internal', 'This server sends no requests to its clients.');
  },
};

/**
 * Returns a function that creates a separate server object for each session (R-MCP-10). The SDK handles `initialize`, `ping` and
 * their cancellation. All other methods get the unvalidated parameters, so that clients get this program's error messages instead
 * of the SDK's.
 */
export function createSessionServer({ profile, perform, clock, log }: Deps): (sdk: Sdk, session: Session) => Promise<void> {
  const methods = new Map(
    Object.entries({ ...toolMethods(profile, clock, log), ...(profile.resources && resourceMethods(perform)) }),
  );
  const capabilities = {
    tools: profile.packs ? { listChanged: true } : {},
    ...(profile.resources && { resources: { subscribe: true } }),
  };
  return async ({ Server }, session) => {
    const server = new Server(profile.info, {
      capabilities,
      instructions: profile.instructions,
      jsonSchemaValidator: noValidator,
    });
    // The brief is asked for by the client's `initialize`, not when the session opens, because a GET request must change nothing.
    if (profile.briefs) {
      session.completeInitialize = async (result, params) =>
        OWN_PROGRAMS.has(programOf(params) ?? '')
          ? result
          : { ...result, instructions: await withBrief(profile.instructions, perform, session.owner.caller) };
    }
    server.fallbackRequestHandler = () => {
      const { code, message } = unknownMethod();
      throw Object.assign(new Error(message), { code });
    };
    session.findMethod = (method) => {
      const run = methods.get(method);
      return (
        run &&
        (async (params, context) => {
          try {
            return await run(session, params, context);
          } catch (error) {
            if (!(error instanceof ProtocolError)) logIfInternal(log, method, session, asFailure(error));
            throw error;
          }
        })
      );
    };
    await server.connect(session);
  };
}

/** Our own programs, whose sessions have no model: the check of a connection, and a bridge that opens a lost session again. */
const OWN_PROGRAMS: ReadonlySet<string> = new Set(['helmdeck-memory', 'helmdeck-stdio-bridge']);

/** Returns the name that the program of a client gives itself in `initialize`. */
function programOf({ clientInfo }: Readonly<Record<string, unknown>> = {}): string | undefined {
  const { name }: { readonly name?: unknown } = Object(clientInfo);
  return typeof name === 'string' ? name : undefined;
}

/** Maximum milliseconds that the start of a session waits for its brief. */
const BRIEF_MS = 500;

/** Adds the brief for the start of a session to the instructions. A session starts without it if the memory cannot be read. */
async function withBrief(instructions: string, perform: Perform, caller: Caller): Promise<string> {
  const signal = AbortSignal.timeout(BRIEF_MS);
  const brief = await orAborted(signal, perform(caller, 'brief', {}, { signal })).catch(() => undefined);
  return brief === undefined || brief.text === '' ? instructions : `${instructions}\n\n${brief.text}`;
}

const unknownMethod = (): ProtocolError =>
  new ProtocolError('unknown_method', 'Unknown method; this server supports only `initialize`, `ping`, tools and resources.');

const toolMethods = ({ tools, packs }: ServerProfile, clock: Clock, log: Deps['log']): Record<string, Method> => {
  /** Finds the tool and returns a function that runs it. `operation` is the name that is logged if the run fails. */
  const findCall = (
    session: Session,
    { name, arguments: input = {}, _meta }: Params,
    { requestId, signal }: RequestContext,
  ): { operation: string; run: () => Promise<CallToolResult> } => {
    const { caller } = session.owner;
    if (typeof name !== 'string') throw new ProtocolError('invalid_params', '`name` must be a string; send the name of a tool.');
    const context = callContextOf({ session, requestId, progressToken: _meta?.progressToken, signal, clock });
    const tool = tools.find(name);
    if (tool) return { operation: tool.operation, run: () => tools.call(tool, caller, input, context) };
    const pack = packs?.find(name);
    if (!packs || !pack) throw unknownToolFailure(name, [...tools.names(caller), ...(packs?.names(caller) ?? [])]);
    const run = () => packs.call({ pack, caller, input, packSession: _meta?.['session'], context });
    return { operation: 'runPack', run };
  };

  return {
    'tools/list': ({ owner: { caller } }, params) => {
      rejectCursor(params);
      return { tools: [...tools.list(caller), ...(packs?.list(caller) ?? [])] };
    },

    async 'tools/call'(session, params, context) {
      let operation = 'none';
      try {
        const call = findCall(session, params, context);
        operation = call.operation;
        return await call.run();
      } catch (error) {
        if (error instanceof ProtocolError) throw error;
        const failure = asFailure(error);
        logIfInternal(log, operation, session, failure);
        return toToolResult(failure);
      }
    },
  };
};

const PROGRESS_INTERVAL_MS = 100;
const MAX_PROGRESS_MESSAGE = 500;

interface CallOptions {
  readonly session: Session;
  readonly requestId: RequestId;
  readonly progressToken: ProgressToken | undefined;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/**
 * Creates the context of a tool call. Its `progress` sends notifications to the client, if the client sent a progress token
 * (R-PACK-27).
 */
function callContextOf({ session, requestId, progressToken, signal, clock }: CallOptions): CallContext {
  // Each call is a separate requester, because one client can run many calls at the same time. The signal identifies the call.
  const requester = signal;
  if (progressToken === undefined) return { requester, signal };
  let lastProgress = -Infinity;
  let lastSentAt = -Infinity;
  return {
    requester,
    signal,
    progress(progress, total, message) {
      const now = clock.steady();
      // Skip values that do not increase, which the protocol forbids, and NaN and Infinity, which JSON cannot represent.
      if (!Number.isFinite(progress) || progress <= lastProgress || now - lastSentAt < PROGRESS_INTERVAL_MS) return;
      lastProgress = progress;
      lastSentAt = now;
      session.sendProgress(Number(requestId), {
        progressToken,
        progress,
        ...(total !== undefined && Number.isFinite(total) && { total }),
        ...(message !== undefined && { message: message.slice(0, MAX_PROGRESS_MESSAGE).toWellFormed() }),
      });
    },
  };
}

/** Logs where an internal failure happened, because the response to the client does not contain the cause. */
function logIfInternal(log: Deps['log'], operation: string, { owner: { caller } }: Session, { code }: Failure): void {
  if (code === 'internal') log({ operation, client: caller.client });
}

const resourceMethods = (perform: Perform): Record<string, Method> => ({
  'resources/list': (_session, params) => {
    rejectCursor(params);
    return { resources: RESOURCE_LIST };
  },
  'resources/templates/list': () => ({ resourceTemplates: [] }),
  'resources/read': ({ owner: { caller } }, { uri }) => readResource(perform, caller, uri),
  'resources/subscribe': ({ owner: { caller }, subscriptions }, { uri }) => {
    subscriptions.add(requireReadable(uri, caller));
    return {};
  },
  'resources/unsubscribe': ({ subscriptions }, { uri }) => {
    subscriptions.delete(requireResource(uri));
    return {};
  },
});

/** Refuses a cursor. Every list fits on one page, so no cursor can be valid. */
function rejectCursor({ cursor }: Params): void {
  if (cursor !== undefined)
    throw new ProtocolError('invalid_params', '`cursor` is not valid, because the list has only one page; leave it out.');
}
