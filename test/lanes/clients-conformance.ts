import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The protocol revision that the suite tests. */
const REVISION = '2025-11-25';

/** Scenarios that a server without test tools can pass. Each must. */
const APPLICABLE = [
  'server-initialize',
  'ping',
  'tools-list',
  'resources-list',
  'server-sse-multiple-streams',
  'server-sse-polling',
  'dns-rebinding-protection',
] as const;

const TEST_TOOL = 'calls a tool that only the example server of the suite has';
const TEST_RESOURCE = 'reads a resource that only the example server of the suite has';
const NO_PROMPTS = 'the server does not declare the prompts capability';

/** Every other scenario, with the reason why it does not apply. Some pass by chance, because an unknown tool returns text with `isError`. */
const NOT_APPLICABLE: Readonly<Record<string, string>> = {
  'logging-set-level': 'the server does not declare the logging capability',
  'completion-complete': 'the server does not declare the completions capability',
  'tools-call-simple-text': TEST_TOOL,
  'tools-call-image': TEST_TOOL,
  'tools-call-audio': TEST_TOOL,
  'tools-call-embedded-resource': TEST_TOOL,
  'tools-call-mixed-content': TEST_TOOL,
  'tools-call-with-logging': TEST_TOOL,
  'tools-call-error': TEST_TOOL,
  'tools-call-with-progress': TEST_TOOL,
  'tools-call-sampling': `${TEST_TOOL}; the server asks clients for no completions`,
  'tools-call-elicitation': `${TEST_TOOL}; the server asks the user nothing through clients`,
  'json-schema-2020-12': TEST_TOOL,
  'elicitation-sep1034-defaults': TEST_TOOL,
  'elicitation-sep1330-enums': TEST_TOOL,
  'resources-read-text': TEST_RESOURCE,
  'resources-read-binary': TEST_RESOURCE,
  'resources-templates-read': TEST_RESOURCE,
  'resources-subscribe': TEST_RESOURCE,
  'resources-unsubscribe': TEST_RESOURCE,
  'prompts-list': NO_PROMPTS,
  'prompts-get-simple': NO_PROMPTS,
  'prompts-get-with-args': NO_PROMPTS,
  'prompts-get-embedded-resource': NO_PROMPTS,
  'prompts-get-with-image': NO_PROMPTS,
};

const SUITE = '@modelcontextprotocol/conformance/dist/index.js';

interface Ran {
  readonly code: number;
  readonly out: string;
}

interface Lane {
  readonly run: (program: string, ...args: string[]) => Promise<Ran>;
  readonly check: (what: string, holds: boolean, shown?: unknown) => void;
}

/**
 * A proxy in front of the listener, because the suite cannot send a token. It adds a token and forwards everything else unchanged,
 * Host and Origin included. The listener must allow its `host`.
 */
export class TokenProxy implements Disposable {
  readonly #server: Server;
  #target: { readonly url: URL; readonly token: string } | undefined;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(): Promise<TokenProxy> {
    const proxy: TokenProxy = new TokenProxy(
      createServer((asked, response) => {
        const target = proxy.#target;
        if (!target) return void response.writeHead(502).end();
        const { url, token } = target;
        const onward = request(
          {
            host: url.hostname,
            port: url.port,
            path: asked.url,
            method: asked.method,
            headers: { ...asked.headers, authorization: `Bearer ${token}` },
          },
          (answer) => {
            response.writeHead(answer.statusCode ?? 502, answer.headers);
            answer.pipe(response);
          },
        );
        response.once('close', () => onward.destroy());
        onward.once('error', () => response.destroy());
        asked.pipe(onward);
      }),
    );
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get host(): string {
    return `localhost:${(this.#server.address() as AddressInfo).port}`;
  }

  forwardTo(url: string, token: string): void {
    this.#target = { url: new URL(url), token };
  }

  [Symbol.dispose](): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** MCP's official conformance suite: every scenario is run, or named with the reason why it does not apply. */
export async function conformance(url: string, { run, check }: Lane): Promise<void> {
  const { out } = await run(SUITE, 'list', '--server', '--spec-version', REVISION);
  const known = [...out.matchAll(/^ {2}- (\S+) \[(.*)\]$/gm)].map(([, name = '']) => name);
  const named = [...APPLICABLE, ...Object.keys(NOT_APPLICABLE)];
  check(
    `conformance: every server scenario at ${REVISION} is run or named as not applicable, and no other (R-MCP-13)`,
    known.length > 0 && known.toSorted().join() === named.toSorted().join(),
    { unknown: known.filter((name) => !named.includes(name)), gone: named.filter((name) => !known.includes(name)), out },
  );
  for (const scenario of APPLICABLE) {
    const ran = await run(SUITE, 'server', '--url', url, '--scenario', scenario);
    check(`conformance: ${scenario} (R-MCP-13)`, ran.code === 0 && !/failed: [1-9]|FAILURE/i.test(ran.out), ran.out);
  }
}
