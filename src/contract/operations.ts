import type * as z from 'zod';
import { Preview, PreviewInput } from './bring.ts';
import {
  ClientList,
  ClientsInput,
  ConnectClientInput,
  ConnectionPlan,
  ConnectReceipt,
  DisconnectClientInput,
  DisconnectReceipt,
  PauseReceipt,
  PauseTokenInput,
  PlanConnectionInput,
  Verification,
  VerifyClientInput,
} from './client.ts';
import { CredentialList, CredentialReceipt, CredentialsInput, DropCredentialInput, SetCredentialInput } from './credential.ts';
import {
  ApproveOllamaInput,
  CancelPullInput,
  Embedded,
  EmbeddingsInput,
  EmbeddingsReport,
  EmbedInput,
  PullModelInput,
  SetEmbeddingsInput,
  TestedEmbeddings,
  TestEmbeddingsInput,
} from './embeddings.ts';
import { FactDetail, FactFilter, FactInput, FactKey, FactList, FactPatch, FactReceipt, FactSummary } from './fact.ts';
import { ForgetInput, ForgetReceipt } from './forget.ts';
import { Activity, ActivityInput, FactHistory, UndoInput, UndoReceipt } from './history.ts';
import { later } from './later.ts';
import { EndedSession, EndSessionInput, PackDetail, PackInput, PackList, PacksInput, Result, RunPackInput } from './pack.ts';
import {
  CancelPipelineRunInput,
  DeletedPipeline,
  DeletePipelineInput,
  FinishPipelineInput,
  PipelineDefinition,
  PipelineDetail,
  PipelineInput,
  PipelineList,
  PipelineReceipt,
  PipelineRun,
  PipelineRunInput,
  PipelineRuns,
  PipelineRunsInput,
  PipelinesInput,
  RunPipelineInput,
} from './pipeline.ts';
import {
  Callers,
  CallersInput,
  Context,
  ContextInput,
  MyDefaults,
  MyDefaultsInput,
  MyMemory,
  MyMemoryInput,
  Names,
  NamesInput,
  Status,
  StatusInput,
} from './projection.ts';
import { QmdAnswer, QmdQuestion, SearchAnswer, SearchInput } from './query.ts';
import { ChangeSettingInput, SettingRow, Settings, SettingsInput } from './settings.ts';
import { MintInput, MintReceipt, RevokeInput, RevokeReceipt, TokenList, type TokenScope, TokensInput } from './token.ts';
import { Export, ExportInput, ImportInput, ImportReceipt } from './transfer.ts';
import { CheckForUpdatesInput, UpdatesFound } from './updates.ts';
import {
  BackupInput,
  BackupReceipt,
  Backups,
  BackupsInput,
  KeyReport,
  LockInput,
  RecoveryKey,
  RecoveryKeyInput,
  RotatedKey,
  RotateKeyInput,
  UnlockInput,
  Verified,
  VerifyInput,
} from './upkeep.ts';

interface Operation {
  readonly input: () => z.ZodType;
  readonly output: () => z.ZodType;
  /** What the caller's token must be good for. */
  readonly scope: TokenScope;
}

/**
 * Everything memory can be asked. The core implements exactly this table, and every wire's schemas are generated from it.
 * Who is asking is not in any input: it comes from the token.
 */
export const operations = {
  remember: { input: FactInput, output: FactReceipt, scope: 'memory:write' },
  recall: {
    input: later(() =>
      FactKey().meta({
        title: 'Recall a fact',
        description: 'Reads one fact by its exact key, with its value, times and writer.',
      }),
    ),
    output: FactDetail,
    scope: 'memory:read',
  },
  list: { input: FactFilter, output: FactList, scope: 'memory:read' },
  patch: { input: FactPatch, output: FactSummary, scope: 'memory:write' },
  forget: { input: ForgetInput, output: ForgetReceipt, scope: 'memory:write' },
  history: {
    input: later(() =>
      FactKey().meta({
        title: 'Show the history of a fact',
        description: 'Reads the earlier versions of one fact, newest first.',
      }),
    ),
    output: FactHistory,
    scope: 'memory:read',
  },
  undo: { input: UndoInput, output: UndoReceipt, scope: 'memory:write' },
  activity: { input: ActivityInput, output: Activity, scope: 'memory:read' },
  search: { input: SearchInput, output: SearchAnswer, scope: 'memory:read' },
  query: { input: QmdQuestion, output: QmdAnswer, scope: 'memory:read' },
  context: { input: ContextInput, output: Context, scope: 'memory:read' },
  myMemory: { input: MyMemoryInput, output: MyMemory, scope: 'memory:read' },
  myDefaults: { input: MyDefaultsInput, output: MyDefaults, scope: 'memory:read' },
  names: { input: NamesInput, output: Names, scope: 'admin' },
  callers: { input: CallersInput, output: Callers, scope: 'memory:read' },
  export: { input: ExportInput, output: Export, scope: 'memory:read' },
  import: { input: ImportInput, output: ImportReceipt, scope: 'memory:write' },
  previewImport: { input: PreviewInput, output: Preview, scope: 'admin' },
  status: { input: StatusInput, output: Status, scope: 'memory:read' },

  packs: { input: PacksInput, output: PackList, scope: 'memory:read' },
  pack: { input: PackInput, output: PackDetail, scope: 'memory:read' },
  runPack: { input: RunPackInput, output: Result, scope: 'packs:run' },
  endSession: { input: EndSessionInput, output: EndedSession, scope: 'packs:run' },

  pipelines: { input: PipelinesInput, output: PipelineList, scope: 'memory:read' },
  pipeline: { input: PipelineInput, output: PipelineDetail, scope: 'memory:read' },
  createPipeline: { input: PipelineDefinition, output: PipelineReceipt, scope: 'packs:run' },
  deletePipeline: { input: DeletePipelineInput, output: DeletedPipeline, scope: 'packs:run' },
  runPipeline: { input: RunPipelineInput, output: PipelineRun, scope: 'packs:run' },
  finishPipeline: { input: FinishPipelineInput, output: PipelineRun, scope: 'packs:run' },
  pipelineRuns: { input: PipelineRunsInput, output: PipelineRuns, scope: 'packs:run' },
  pipelineRun: { input: PipelineRunInput, output: PipelineRun, scope: 'packs:run' },
  cancelPipelineRun: { input: CancelPipelineRunInput, output: PipelineRun, scope: 'packs:run' },

  embed: { input: EmbedInput, output: Embedded, scope: 'memory:read' },
  embeddings: { input: EmbeddingsInput, output: EmbeddingsReport, scope: 'admin' },
  setEmbeddings: { input: SetEmbeddingsInput, output: EmbeddingsReport, scope: 'admin' },
  approveOllama: { input: ApproveOllamaInput, output: EmbeddingsReport, scope: 'admin' },
  pullModel: { input: PullModelInput, output: EmbeddingsReport, scope: 'admin' },
  cancelPull: { input: CancelPullInput, output: EmbeddingsReport, scope: 'admin' },
  testEmbeddings: { input: TestEmbeddingsInput, output: TestedEmbeddings, scope: 'admin' },

  mintToken: { input: MintInput, output: MintReceipt, scope: 'admin' },
  tokens: { input: TokensInput, output: TokenList, scope: 'admin' },
  revokeToken: { input: RevokeInput, output: RevokeReceipt, scope: 'admin' },
  pauseToken: { input: PauseTokenInput, output: PauseReceipt, scope: 'admin' },
  clients: { input: ClientsInput, output: ClientList, scope: 'admin' },
  planConnection: { input: PlanConnectionInput, output: ConnectionPlan, scope: 'admin' },
  connectClient: { input: ConnectClientInput, output: ConnectReceipt, scope: 'admin' },
  disconnectClient: { input: DisconnectClientInput, output: DisconnectReceipt, scope: 'admin' },
  verifyClient: { input: VerifyClientInput, output: Verification, scope: 'admin' },
  credentials: { input: CredentialsInput, output: CredentialList, scope: 'admin' },
  setCredential: { input: SetCredentialInput, output: CredentialReceipt, scope: 'admin' },
  dropCredential: { input: DropCredentialInput, output: CredentialReceipt, scope: 'admin' },
  lock: { input: LockInput, output: KeyReport, scope: 'admin' },
  unlock: { input: UnlockInput, output: KeyReport, scope: 'admin' },
  rotateKey: { input: RotateKeyInput, output: RotatedKey, scope: 'admin' },
  makeRecoveryKey: { input: RecoveryKeyInput, output: RecoveryKey, scope: 'admin' },
  backup: { input: BackupInput, output: BackupReceipt, scope: 'admin' },
  backups: { input: BackupsInput, output: Backups, scope: 'admin' },
  verify: { input: VerifyInput, output: Verified, scope: 'admin' },
  settings: { input: SettingsInput, output: Settings, scope: 'admin' },
  changeSetting: { input: ChangeSettingInput, output: SettingRow, scope: 'admin' },
  checkForUpdates: { input: CheckForUpdatesInput, output: UpdatesFound, scope: 'admin' },
} as const satisfies Record<string, Operation>;

export type OperationName = keyof typeof operations;

/** As a caller sends it. */
export type Request<Name extends OperationName> = z.input<ReturnType<(typeof operations)[Name]['input']>>;
/** As the core receives it: parsed, in canonical form. */
export type Input<Name extends OperationName> = z.output<ReturnType<(typeof operations)[Name]['input']>>;
export type Output<Name extends OperationName> = z.output<ReturnType<(typeof operations)[Name]['output']>>;

/** Own names only: `constructor` and `toString` are not operations. */
export const isOperation = (name: string): name is OperationName => Object.hasOwn(operations, name);
