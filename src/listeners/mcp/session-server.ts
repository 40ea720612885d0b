import type { JSONRPCRequest, ProgressToken, RequestId } from '@modelcontextprotocol/sdk/types.js';
import { asFailure, Failure } from '../../contract/failure.ts';
import type { CallContext } from '../../core/operations/call-context.ts';
import type { Perform } from '../../core/operations/perform.ts';
import type { Clock } from '../../core/time/clock.ts';
import { toToolResult } from '../failure-responses.ts';
import type { LogEvent } from '../route.ts';
import type { Sdk } from './message.ts';
import type { PackTools } from './pack-tools.ts';
import { readResource, requireResource, RESOURCE_LIST } from './resources.ts';
import { ProtocolError, toRpcErrorBody } from './rpc.ts';
import type { Session } from './session.ts';
import { type OperationTools, unknownToolFailure } from './tools.ts';

/** What a client sees of one of our MCP servers. */
export interface ServerProfile {
  readonly info: { readonly name: string; readonly title: string; readonly version: string };
  readonly instructions: string;
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

type Params = NonNullable<JSONRPCRequest['params']>;

/** The SDK's part of a request. */
interface RequestContext {
  readonly requestId: RequestId;
  readonly signal: AbortSignal;
}

type Method = (session: Session, params: Params, context: RequestContext) => Promise<object> | object;

/** Prevents the SDK from loading a schema validator for client responses: this server sends no requests. */
const noValidator = {
  getValidator: () => (): never => {
    throw new Failure('internal', 'This server sends no requests to its clients.');
  },
};

/**
 * Returns a function that creates a separate server object for each session (R-MCP-10). The SDK handles initialize, ping and
 * cancellation. Our methods get the raw parameters, so that our own validation and messages apply, not the SDK's.
 */
export function createSessionServer({ profile, perform, clock, log }: Deps): (sdk: Sdk, session: Session) => Promise<void> {
  const methods = new Map(
    Object.entries({ ...toolMethods(profile, clock, log), ...(profile.resources && resourceMethods(perform)) }),
  );
  const capabilities = { tools: {}, ...(profile.resources && { resources: { subscribe: true } }) };
  const options = { capabilities, instructions: profile.instructions, jsonSchemaValidator: noValidator };
  return async ({ Server }, session) => {
    const server = new Server(profile.info, options);
    server.fallbackRequestHandler = async ({ method, params = {} }, context) => {
      const run = methods.get(method);
      try {
        if (!run) throw new ProtocolError('unknown_method', 'Method not found; this server has tools, resources and ping.');
        return { ...(await run(session, params, context)) };
      } catch (error) {
        if (!(error instanceof ProtocolError)) logIfInternal(log, method, session, asFailure(error));
        const { code, message, data } = toRpcErrorBody(error);
        throw Object.assign(new Error(message), { code, data });
      }
    };
    await server.connect(session);
  };
}

const toolMethods = ({ tools, packs }: ServerProfile, clock: Clock, log: Deps['log']): Record<string, Method> => {
  /** Finds the tool. `operation` names it in the log. */
  const findCall = (
    session: Session,
    { name, arguments: input = {}, _meta }: Params,
    { requestId, signal }: RequestContext,
  ): { operation: string; run: () => Promise<object> } => {
    const { caller } = session.owner;
    if (typeof name !== 'string') throw new ProtocolError('invalid_params', 'name must be the name of a tool, as a string.');
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
        const output = await call.run();
        return { content: [{ type: 'text', text: JSON.stringify(output) }], structuredContent: output };
      } catch (error) {
        if (error instanceof ProtocolError) throw error;
        const failure = asFailure(error);
        logIfInternal(log, operation, session, failure);
        return toToolResult(failure);
      }
    },
  };
};

/** Minimum time between two progress notifications of a call. */
const PROGRESS_INTERVAL_MS = 100;
const MAX_PROGRESS_MESSAGE = 500;

interface CallOptions {
  readonly session: Session;
  readonly requestId: RequestId;
  readonly progressToken: ProgressToken | undefined;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** The context of a tool call. It reports progress if the client sent a progress token (R-PACK-27). */
function callContextOf({ session, requestId, progressToken, signal, clock }: CallOptions): CallContext {
  // Each call counts as a separate requester, because a client may run many at once.
  const requester = signal;
  if (progressToken === undefined) return { requester, signal };
  let lastProgress = -Infinity;
  let lastSentAt = -Infinity;
  return {
    requester,
    signal,
    progress(progress, total, message) {
      const now = clock.steady();
      // The protocol requires increasing values, and JSON has no NaN or Infinity.
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

/** The client is not told the cause of an internal failure, so the log says where it happened. */
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
  'resources/subscribe': ({ subscriptions }, { uri }) => {
    subscriptions.add(requireResource(uri));
    return {};
  },
  'resources/unsubscribe': ({ subscriptions }, { uri }) => {
    subscriptions.delete(requireResource(uri));
    return {};
  },
});

/** Every list fits on one page, so no cursor is valid. */
function rejectCursor({ cursor }: Params): void {
  if (cursor !== undefined) throw new ProtocolError('invalid_params', 'cursor is not valid; leave it out.');
}
