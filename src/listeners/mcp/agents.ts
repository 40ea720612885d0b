import { createMcp, type McpDeps, type McpServer } from './mcp.ts';
import { createQmd } from './qmd.ts';

/** Both MCP servers: the memory itself, and the search that other programs' memories ask. */
export function agentServers(deps: McpDeps): McpServer {
  const servers = [createMcp(deps), createQmd(deps)];
  return {
    routes: servers.flatMap(({ routes }) => routes),
    get sessions() {
      return servers.reduce((sum, { sessions }) => sum + sessions, 0);
    },
    [Symbol.dispose]() {
      for (const server of servers) server[Symbol.dispose]();
    },
  };
}
