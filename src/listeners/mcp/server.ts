import type { JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js';
import { asFailure, Failure } from '../../contract/failure.ts';
import type { Perform } from '../../core/perform.ts';
import type { Trouble } from '../front.ts';
import { asToolResult } from '../refuse.ts';
import { readResource, requireResource, resourceList } from './resources.ts';
import { ProtocolError, rpcErrorOf } from './rpc.ts';
import type { Sdk } from './sdk.ts';
import type { Session } from './session.ts';
import type { Tools } from './tools.ts';

/** What a client sees of one of our MCP servers. */
export interface Face {
  readonly info: { readonly name: string; readonly title: string; readonly version: string };
  readonly instructions: string;
  readonly tools: Tools;
  readonly resources: boolean;
}

interface Deps {
  readonly face: Face;
  readonly perform: Perform;
  readonly log: (trouble: Trouble) => void;
}

type Params = NonNullable<JSONRPCRequest['params']>;
type Method = (session: Session, params: Params) => Promise<object> | object;

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
export function serverFor({ face, perform, log }: Deps): (sdk: Sdk, session: Session) => Promise<void> {
  const methods = new Map(Object.entries({ ...toolMethods(face.tools, log), ...(face.resources && resourceMethods(perform)) }));
  const capabilities = { tools: {}, ...(face.resources && { resources: { subscribe: true } }) };
  const options = { capabilities, instructions: face.instructions, jsonSchemaValidator: asksNothing };
  return async ({ Server }, session) => {
    const server = new Server(face.info, options);
    server.fallbackRequestHandler = async ({ method, params = {} }) => {
      const run = methods.get(method);
      try {
        if (!run) throw new ProtocolError('unknown_method', 'Method not found; this server knows tools, resources and ping.');
        return { ...(await run(session, params)) };
      } catch (error) {
        if (!(error instanceof ProtocolError)) note(log, method, session, asFailure(error));
        const { code, message, data } = rpcErrorOf(error);
        throw Object.assign(new Error(message), { code, data });
      }
    };
    await server.connect(session);
  };
}

const toolMethods = (tools: Tools, log: Deps['log']): Record<string, Method> => ({
  'tools/list': (_session, params) => {
    refuseCursor(params);
    return { tools: tools.list };
  },

  async 'tools/call'(session, { name, arguments: given = {} }) {
    const tool = typeof name === 'string' ? tools.find(name) : undefined;
    if (!tool) throw new ProtocolError('unfit', `There is no such tool; call one of ${tools.names()}.`);
    try {
      const answer = await tools.call(tool, session.owner.caller, given);
      return { content: [{ type: 'text', text: JSON.stringify(answer) }], structuredContent: answer };
    } catch (error) {
      const failure = asFailure(error);
      note(log, tool.operation, session, failure);
      return asToolResult(failure);
    }
  },
});

/** What nobody foresaw is told to the client without its reason; here somebody can find out. */
function note(log: Deps['log'], operation: string, { owner: { caller } }: Session, { code }: Failure): void {
  if (code === 'internal') log({ operation, client: caller.client });
}

const resourceMethods = (perform: Perform): Record<string, Method> => ({
  'resources/list': (_session, params) => {
    refuseCursor(params);
    return { resources: resourceList };
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
