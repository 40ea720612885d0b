/** Names that the core and the window share. Like limits.ts, this file must not import zod. */

/**
 * The scopes that a token can have. `admin` includes all other scopes, and `memory:read` includes `memory:brief`. `memory:brief` is for
 * the hooks of agents, which can ask what is worth knowing now and nothing else.
 */
export const TOKEN_SCOPES = ['memory:read', 'memory:write', 'packs:run', 'memory:brief', 'admin'] as const;

/** The scopes of a new token, unless others are chosen. */
export const DEFAULT_SCOPES = ['memory:read', 'memory:write', 'packs:run'] as const;

/** Events at which a client's hooks ask for a brief: the start of a session, and each prompt. */
export const HOOK_EVENTS = ['session', 'prompt'] as const;

/** Formats of other programs' memories that can be imported. */
export const IMPORT_SOURCES = ['mcp-memory', 'markdown', 'basic-memory', 'chatgpt', 'claude'] as const;

/** Address of the program, unless HELMDECK_ADDR sets another. */
export const DEFAULT_ADDRESS = '127.0.0.1:7345';

/** File name of the extension bundle for Claude Desktop, in the folder of the window's static files. */
export const CLAUDE_BUNDLE = 'helmdeck-memory.mcpb';

/** The clients that `connect` recognises. A token for any other client is quarantined, unless the owner chooses otherwise. */
export const KNOWN_CLIENTS: ReadonlySet<string> = new Set([
  'claude-code',
  'claude-desktop',
  'codex',
  'cursor',
  'gemini-cli',
  'openclaw',
  'openclaw-embeddings',
  'vscode',
]);
