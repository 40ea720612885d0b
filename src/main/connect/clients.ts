import { claudeCode } from './claude-code.ts';
import { claudeDesktop } from './claude-desktop.ts';
import { codex } from './codex.ts';
import type { Connector } from './connector.ts';
import { cursor } from './cursor.ts';
import { geminiCli } from './gemini-cli.ts';
import { openClawEmbeddings } from './openclaw/embeddings.ts';
import { openClaw } from './openclaw/openclaw.ts';
import { claudeCodePlugin, codexPlugin, geminiExtension, isCodexPluginReviewed, withPlugin } from './plugins.ts';
import { vscode } from './vscode.ts';

/** All clients that can be connected, in display order. */
export const CONNECTORS: readonly Connector[] = [
  claudeDesktop,
  withPlugin(claudeCode, claudeCodePlugin),
  openClaw,
  openClawEmbeddings,
  withPlugin(codex, codexPlugin, isCodexPluginReviewed),
  withPlugin(geminiCli, geminiExtension),
  cursor,
  vscode,
];
