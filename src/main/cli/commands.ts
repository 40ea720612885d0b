import { withCliCommand } from '../../contract/cli-command.ts';
import { command, type Group } from './command.ts';
import { brief } from './commands/brief.ts';
import { clockStatus, clockTrust } from './commands/clock.ts';
import { connect, disconnect } from './commands/connect.ts';
import { credentialDrop, credentialList, credentialSet } from './commands/credential.ts';
import { doctor } from './commands/doctor.ts';
import {
  embeddingsApprove,
  embeddingsOff,
  embeddingsOn,
  embeddingsOpenClaw,
  embeddingsPull,
  embeddingsStatus,
  embeddingsTest,
} from './commands/embeddings.ts';
import { history, list, recall, remember, renew, search } from './commands/facts.ts';
import { forget, undo } from './commands/forget.ts';
import { inboxAccept, inboxDrop, inboxList } from './commands/inbox.ts';
import { keyInit, keyRecovery, keyRotate, keyStatus, lock, unlock } from './commands/key.ts';
import { meaningOff, meaningOn, meaningRebuild, meaningStatus } from './commands/meaning.ts';
import { move } from './commands/move.ts';
import { packDisable, packEnable, packList, packNew, packRun, packTest } from './commands/packs.ts';
import { pipelineAdopt, pipelineList, pipelineShow } from './commands/pipelines.ts';
import { mcp, serve } from './commands/program.ts';
import { status } from './commands/status.ts';
import { tokenList, tokenMint, tokenPause, tokenResume, tokenRevoke } from './commands/tokens.ts';
import { exportFacts, importFacts, salvageFacts } from './commands/transfer.ts';
import { backup, restore, verify } from './commands/upkeep.ts';
import { activity, callers, memory, showContext } from './commands/views.ts';
import { window, windowEnd, windowList } from './commands/window.ts';
import { formatHelp } from './help.ts';

const help = command({
  name: 'help',
  description: 'Shows help on a command, a group (such as key), settings or exit-codes.',
  arguments: {
    topic: { description: 'A command, a group of commands, `settings` or `exit-codes`.', optional: true, rest: true },
  },
  async run({ arguments: { topic = '' } }, context) {
    await context.terminal.print(...formatHelp(groups, topic).map(withCliCommand));
  },
});

/** All commands in display order. The parser, the help and docs/commands.md are built from this table. */
export const groups: readonly Group[] = [
  { title: 'Facts', commands: [remember, recall, search, list, renew, forget, history, undo] },
  { title: 'Inbox', commands: [inboxList, inboxAccept, inboxDrop] },
  { title: 'Overview', commands: [memory, showContext, brief, activity, callers] },
  { title: 'The program', commands: [serve, window, windowList, windowEnd, status, doctor, mcp] },
  { title: 'Packs', commands: [packList, packRun, packNew, packTest, packEnable, packDisable] },
  { title: 'Pipelines', commands: [pipelineList, pipelineShow, pipelineAdopt] },
  { title: 'Search by meaning', commands: [meaningOn, meaningOff, meaningStatus, meaningRebuild] },
  {
    title: 'Embeddings',
    commands: [
      embeddingsOn,
      embeddingsOff,
      embeddingsStatus,
      embeddingsApprove,
      embeddingsPull,
      embeddingsTest,
      embeddingsOpenClaw,
    ],
  },
  { title: 'Key', commands: [keyInit, keyStatus, keyRotate, keyRecovery, lock, unlock] },
  { title: 'Clients and tokens', commands: [connect, disconnect, tokenMint, tokenList, tokenPause, tokenResume, tokenRevoke] },
  { title: 'Credentials for packs', commands: [credentialSet, credentialList, credentialDrop] },
  {
    title: 'Backup and repair',
    commands: [backup, verify, restore, move, salvageFacts, exportFacts, importFacts, clockStatus, clockTrust],
  },
  { title: 'Help', commands: [help] },
];
