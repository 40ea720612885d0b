import { createMemoryServer, type McpDeps, type McpServer } from './mcp-servers.ts';
import { createSearchServer } from './qmd.ts';

/** Both MCP servers: the memory itself, and the search that other programs' memories ask. */
export function createMcpServers(deps: McpDeps): McpServer {
  const servers = [createMemoryServer(deps), createSearchServer(deps)];
  return {
    routes: servers.flatMap(({ routes }) => routes),
    get sessionCount() {
      return servers.reduce((sum, { sessionCount: sessions }) => sum + sessions, 0);
    },
    [Symbol.dispose]() {
      for (const server of servers) server[Symbol.dispose]();
    },
  };
}
