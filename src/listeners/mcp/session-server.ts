import type { JSONRPCRequest, RequestId } from '@modelcontextprotocol/sdk/types.js';
import { asFailure, Failure } from '../../contract/failure.ts';
import type { Perform } from '../../core/operations/perform.ts';
import type { Clock } from '../../core/time/clock.ts';
import { toToolResult } from '../failure-responses.ts';
import type { LogEvent } from '../log-event.ts';
import type { PackTools } from './pack-tools.ts';
import { callContextOf } from './progress.ts';
import { readResource, requireResource, RESOURCE_LIST } from './resources.ts';
import { ProtocolError, toRpcErrorBody } from './rpc.ts';
import type { Sdk } from './sdk.ts';
import type { Session } from './session.ts';
import type { OperationTools } from './tools.ts';
import { unknownToolFailure } from './unknown-tool.ts';

/** What a client sees of one of our MCP servers. */
export interface ServerProfile {
  readonly info: { readonly name: string; readonly title: string; readonly version: string };
  readonly instructions: string;
  readonly tools: OperationTools;
  readonly packs?: PackTools;
  readonly resources: boolean;
}

interface Deps {
  readonly face: ServerProfile;
  readonly perform: Perform;
  readonly clock: Clock;
  readonly log: (trouble: LogEvent) => void;
}

type Params = NonNullable<JSONRPCRequest['params']>;

/** What the SDK knows of a request. */
interface Extra {
  readonly requestId: RequestId;
  readonly signal: AbortSignal;
}

type Method = (session: Session, params: Params, extra: Extra) => Promise<object> | object;

/** The SDK would prepare itself to check what clients answer to questions; this server asks none. */
const asksNothing = {
  getValidator: () => (): never => {
    throw new Failure('internal', 'This server asks its clients nothing.');
  },
};

/**
 * A server object for each session: what answers one client has never seen another (R-MCP-10). The SDK keeps the protocol
 * (initialize, ping, cancellation); our methods get requests as they came, so that our validator refuses what is wrong with
 * them, in its own words, and not the SDK.
 */
export function createSessionServer({ face, perform, clock, log }: Deps): (sdk: Sdk, session: Session) => Promise<void> {
  const methods = new Map(Object.entries({ ...toolMethods(face, clock, log), ...(face.resources && resourceMethods(perform)) }));
  const capabilities = { tools: {}, ...(face.resources && { resources: { subscribe: true } }) };
  const options = { capabilities, instructions: face.instructions, jsonSchemaValidator: asksNothing };
  return async ({ Server }, session) => {
    const server = new Server(face.info, options);
    server.fallbackRequestHandler = async ({ method, params = {} }, extra) => {
      const run = methods.get(method);
      try {
        if (!run) throw new ProtocolError('unknown_method', 'Method not found; this server knows tools, resources and ping.');
        return { ...(await run(session, params, extra)) };
      } catch (error) {
        if (!(error instanceof ProtocolError)) note(log, method, session, asFailure(error));
        const { code, message, data } = toRpcErrorBody(error);
        throw Object.assign(new Error(message), { code, data });
      }
    };
    await server.connect(session);
  };
}

const toolMethods = ({ tools, packs }: ServerProfile, clock: Clock, log: Deps['log']): Record<string, Method> => {
  /** What to run, and as which operation it is told of. */
  const called = (session: Session, { name, arguments: given = {}, _meta }: Params, { requestId, signal }: Extra) => {
    const { caller } = session.owner;
    if (typeof name !== 'string') throw new ProtocolError('unfit', 'name must be the name of a tool; send it as text.');
    const during = callContextOf({ session, number: requestId, token: _meta?.progressToken, signal, clock });
    const tool = tools.find(name);
    if (tool) return { operation: tool.operation, run: () => tools.call(tool, caller, given, during) };
    const pack = packs?.find(name);
    if (!packs || !pack) {
      throw unknownToolFailure(name, [...tools.names(caller), ...(packs?.names(caller) ?? [])]);
    }
    const run = () => packs.call({ pack, caller, given, session: _meta?.['session'], during });
    return { operation: 'runPack', run };
  };

  return {
    'tools/list': ({ owner: { caller } }, params) => {
      refuseCursor(params);
      return { tools: [...tools.list(caller), ...(packs?.list(caller) ?? [])] };
    },

    async 'tools/call'(session, params, extra) {
      let operation = 'none';
      try {
        const call = called(session, params, extra);
        operation = call.operation;
        const answer = await call.run();
        return { content: [{ type: 'text', text: JSON.stringify(answer) }], structuredContent: answer };
      } catch (error) {
        if (error instanceof ProtocolError) throw error;
        const failure = asFailure(error);
        note(log, operation, session, failure);
        return toToolResult(failure);
      }
    },
  };
};

/** What nobody foresaw is told to the client without its reason; here somebody can find out. */
function note(log: Deps['log'], operation: string, { owner: { caller } }: Session, { code }: Failure): void {
  if (code === 'internal') log({ operation, client: caller.client });
}

const resourceMethods = (perform: Perform): Record<string, Method> => ({
  'resources/list': (_session, params) => {
    refuseCursor(params);
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

/** Every list fits into one page, so no cursor is one of ours. */
function refuseCursor({ cursor }: Params): void {
  if (cursor !== undefined) throw new ProtocolError('unfit', 'cursor is not one of ours; leave it out.');
}
