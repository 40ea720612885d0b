import { claudeCode } from './claude-code.ts';
import { claudeDesktop } from './claude-desktop.ts';
import { codex } from './codex.ts';
import type { Connector } from './connector.ts';
import { cursor } from './cursor.ts';
import { geminiCli } from './gemini-cli.ts';
import { openClawEmbeddings } from './openclaw/embeddings.ts';
import { openClaw } from './openclaw/openclaw.ts';
import { vscode } from './vscode.ts';

/** Every client that can be connected here, in the order in which they are shown. */
export const CONNECTORS: readonly Connector[] = [
  claudeDesktop,
  claudeCode,
  openClaw,
  openClawEmbeddings,
  codex,
  geminiCli,
  cursor,
  vscode,
];
