import type * as z from 'zod';
import { BriefInput, BriefOutput } from './brief.ts';
import {
  CaptureChoice,
  ClientList,
  ClientsInput,
  ConnectClientInput,
  ConnectionPlan,
  ConnectReceipt,
  DisconnectClientInput,
  DisconnectReceipt,
  PackOffer,
  PauseReceipt,
  PauseTokenInput,
  PlanConnectionInput,
  SetCaptureInput,
  ClientVerification,
  VerifyClientInput,
} from './client.ts';
import { CredentialList, CredentialReceipt, CredentialsInput, DropCredentialInput, SetCredentialInput } from './credential.ts';
import {
  ApproveOllamaInput,
  CancelPullInput,
  EmbedResponse,
  EmbeddingsInput,
  EmbeddingsReport,
  EmbedInput,
  PullModelInput,
  SetEmbeddingsInput,
  EmbeddingsTest,
  TestEmbeddingsInput,
} from './embeddings.ts';
import { FactDetail, FactFilter, FactInput, FactKey, FactList, FactPatch, FactReceipt, FactSummary } from './fact.ts';
import { ForgetInput, ForgetReceipt, UndoForgetInput } from './forget.ts';
import { Activity, ActivityInput, FactHistory, UndoInput, UndoReceipt } from './history.ts';
import { ImportPreview, ImportPreviewInput } from './import-preview.ts';
import { AcceptInboxInput, AcceptInboxReceipt, DropInboxInput, DropInboxReceipt, InboxInput, InboxPage } from './inbox.ts';
import { SHORTENING_GRACE } from './limits.ts';
import { MeaningInput, MeaningReport, RebuildMeaningInput, SetMeaningInput } from './meaning.ts';
import {
  EndSessionReceipt,
  EndSessionInput,
  PackDetail,
  PackInput,
  PackList,
  PacksInput,
  PackResult,
  RunPackInput,
} from './pack.ts';
import {
  AdoptPipelineReceipt,
  AdoptPipelineInput,
  CancelPipelineRunInput,
  DeletePipelineReceipt,
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
import { lazy } from './schema.ts';
import { QmdResponse, QmdRequest, SearchResponse, SearchInput } from './search.ts';
import { ChangeSettingInput, SettingRow, SettingsReport, SettingsInput } from './settings.ts';
import { MintInput, MintReceipt, RevokeInput, RevokeReceipt, TokenList, type TokenScope, TokensInput } from './token.ts';
import { Export, ExportInput, ImportInput, ImportReceipt } from './transfer.ts';
import { CheckForUpdatesInput, UpdateReport } from './updates.ts';
import {
  BackupInput,
  BackupReceipt,
  BackupList,
  BackupsInput,
  KeyReport,
  LockInput,
  RecoveryKey,
  RecoveryKeyInput,
  RotateKeyReceipt,
  RotateKeyInput,
  TrustClockInput,
  TrustClockReceipt,
  UnlockInput,
  VerifyReport,
  VerifyInput,
} from './upkeep.ts';
import {
  CallerList,
  CallersInput,
  Context,
  ContextInput,
  MyDefaults,
  MyDefaultsInput,
  MyMemory,
  MyMemoryInput,
  NameCounts,
  NamesInput,
  Status,
  StatusInput,
} from './views.ts';
import { EndWindowSessionReceipt, EndWindowSessionInput, WindowSessionList, WindowSessionsInput } from './window-session.ts';

/**
 * The worst effect that an operation can have. Every row of the operations table declares its effect, so that every new operation
 * is checked for what it can destroy or disclose. In the desktop window, an operation with a `ConsentEffect` runs only after the
 * owner has agreed. Agents are never asked for consent, because the scopes of their tokens already limit them.
 *
 * - `none`: does not change anything that outlives the call.
 * - `reversible`: makes a change that can be undone, such as to a fact with earlier versions, to a setting, or to access.
 * - `runs`: runs packs, which can have other effects. When a pack calls an operation of the memory, `perform` checks the effect
 *   of that operation.
 * - `destroys`: deletes or replaces data that cannot be restored.
 * - `grants`: gives a program or a person new access to the memory.
 * - `discloses`: sends data from the memory, or the caller's input, to another program or machine.
 * - `executes`: allows a program to start on this machine that was not allowed before.
 */
export type Effect = 'none' | 'reversible' | 'runs' | ConsentEffect;

/** Two possible effects of one operation. The parsed input decides between them. */
interface EffectByInput {
  readonly when: (input: never) => boolean;
  /** The condition in words, for docs/effects.md. */
  readonly condition: string;
  readonly effect: Effect;
  readonly otherwise: Effect;
}

/** The effects to which the owner must agree before the window runs the operation. */
export type ConsentEffect = 'destroys' | 'grants' | 'discloses' | 'executes';

const NEEDS_CONSENT = {
  none: false,
  reversible: false,
  runs: false,
  destroys: true,
  grants: true,
  discloses: true,
  executes: true,
} as const satisfies { [Each in Effect]: Each extends ConsentEffect ? true : false };

export const needsConsent = (effect: Effect): effect is ConsentEffect => NEEDS_CONSENT[effect];

interface Operation {
  readonly input: () => z.ZodType;
  readonly output: () => z.ZodType;
  readonly scope: TokenScope;
  readonly effect: Effect | EffectByInput;
}

/** Whether the requested lifetime is under 7 days, which counts as deletion: an expired fact is deleted with its history. */
const expiresSoon = ({ ttl_seconds: ttl }: { readonly ttl_seconds?: number | undefined }): boolean =>
  ttl !== undefined && ttl < SHORTENING_GRACE;
const EXPIRES_SOON = 'with `ttl_seconds` under 7 days';

/**
 * Every operation of the memory. The core implements exactly this table, and the schemas of REST, MCP, the command line and the
 * window are generated from it. Inputs never name the caller, because the caller is read only from the token.
 */
export const operations = {
  remember: {
    input: FactInput,
    output: FactReceipt,
    scope: 'memory:write',
    effect: { when: expiresSoon, condition: EXPIRES_SOON, effect: 'destroys', otherwise: 'reversible' },
  },
  recall: {
    input: lazy(() =>
      FactKey().meta({
        title: 'Recall a fact',
        description: 'Returns one fact by its exact key: its value, its times and the program that wrote it.',
      }),
    ),
    output: FactDetail,
    scope: 'memory:read',
    effect: 'none',
  },
  list: { input: FactFilter, output: FactList, scope: 'memory:read', effect: 'none' },
  patch: {
    input: FactPatch,
    output: FactSummary,
    scope: 'memory:write',
    effect: { when: expiresSoon, condition: EXPIRES_SOON, effect: 'destroys', otherwise: 'reversible' },
  },
  forget: {
    input: ForgetInput,
    output: ForgetReceipt,
    scope: 'memory:write',
    effect: {
      when: ({ dry_run }: ForgetInput) => !dry_run,
      condition: 'without `dry_run`',
      effect: 'destroys',
      otherwise: 'none',
    },
  },
  undoForget: { input: UndoForgetInput, output: FactSummary, scope: 'memory:write', effect: 'reversible' },
  history: {
    input: lazy(() =>
      FactKey().meta({
        title: 'Show the history of a fact',
        description: 'Lists the earlier versions of one fact, newest first.',
      }),
    ),
    output: FactHistory,
    scope: 'memory:read',
    effect: 'none',
  },
  undo: {
    input: UndoInput,
    output: UndoReceipt,
    scope: 'memory:write',
    effect: { when: ({ dry_run }: UndoInput) => !dry_run, condition: 'without `dry_run`', effect: 'destroys', otherwise: 'none' },
  },
  activity: { input: ActivityInput, output: Activity, scope: 'memory:read', effect: 'none' },
  search: { input: SearchInput, output: SearchResponse, scope: 'memory:read', effect: 'none' },
  query: { input: QmdRequest, output: QmdResponse, scope: 'memory:read', effect: 'none' },
  context: { input: ContextInput, output: Context, scope: 'memory:read', effect: 'none' },
  brief: { input: BriefInput, output: BriefOutput, scope: 'memory:brief', effect: 'none' },
  myMemory: { input: MyMemoryInput, output: MyMemory, scope: 'memory:read', effect: 'none' },
  myDefaults: { input: MyDefaultsInput, output: MyDefaults, scope: 'memory:read', effect: 'none' },
  names: { input: NamesInput, output: NameCounts, scope: 'admin', effect: 'none' },
  callers: { input: CallersInput, output: CallerList, scope: 'memory:read', effect: 'none' },
  export: { input: ExportInput, output: Export, scope: 'memory:read', effect: 'none' },
  import: { input: ImportInput, output: ImportReceipt, scope: 'memory:write', effect: 'reversible' },
  previewImport: { input: ImportPreviewInput, output: ImportPreview, scope: 'admin', effect: 'none' },
  status: { input: StatusInput, output: Status, scope: 'memory:read', effect: 'none' },

  inbox: { input: InboxInput, output: InboxPage, scope: 'admin', effect: 'none' },
  // `perform` checks the effect of the operation that was held.
  acceptInbox: { input: AcceptInboxInput, output: AcceptInboxReceipt, scope: 'admin', effect: 'runs' },
  dropInbox: { input: DropInboxInput, output: DropInboxReceipt, scope: 'admin', effect: 'destroys' },

  packs: { input: PacksInput, output: PackList, scope: 'memory:read', effect: 'none' },
  pack: { input: PackInput, output: PackDetail, scope: 'memory:read', effect: 'none' },
  runPack: { input: RunPackInput, output: PackResult, scope: 'packs:run', effect: 'runs' },
  endSession: { input: EndSessionInput, output: EndSessionReceipt, scope: 'packs:run', effect: 'destroys' },

  pipelines: { input: PipelinesInput, output: PipelineList, scope: 'memory:read', effect: 'none' },
  pipeline: { input: PipelineInput, output: PipelineDetail, scope: 'memory:read', effect: 'none' },
  // The owner is responsible for a pipeline created in the window, so the pipeline runs with all rights of its caller.
  createPipeline: { input: PipelineDefinition, output: PipelineReceipt, scope: 'packs:run', effect: 'grants' },
  adoptPipeline: { input: AdoptPipelineInput, output: AdoptPipelineReceipt, scope: 'admin', effect: 'grants' },
  deletePipeline: { input: DeletePipelineInput, output: DeletePipelineReceipt, scope: 'packs:run', effect: 'destroys' },
  runPipeline: { input: RunPipelineInput, output: PipelineRun, scope: 'packs:run', effect: 'runs' },
  finishPipeline: { input: FinishPipelineInput, output: PipelineRun, scope: 'packs:run', effect: 'runs' },
  pipelineRuns: { input: PipelineRunsInput, output: PipelineRuns, scope: 'packs:run', effect: 'none' },
  pipelineRun: { input: PipelineRunInput, output: PipelineRun, scope: 'packs:run', effect: 'none' },
  cancelPipelineRun: { input: CancelPipelineRunInput, output: PipelineRun, scope: 'packs:run', effect: 'reversible' },

  embed: { input: EmbedInput, output: EmbedResponse, scope: 'memory:read', effect: 'none' },
  embeddings: { input: EmbeddingsInput, output: EmbeddingsReport, scope: 'admin', effect: 'none' },
  setEmbeddings: {
    input: SetEmbeddingsInput,
    output: EmbeddingsReport,
    scope: 'admin',
    effect: {
      when: ({ adopt }: SetEmbeddingsInput) => adopt === true,
      condition: 'when `adopt` is true',
      effect: 'discloses',
      otherwise: 'reversible',
    },
  },
  approveOllama: { input: ApproveOllamaInput, output: EmbeddingsReport, scope: 'admin', effect: 'executes' },
  pullModel: { input: PullModelInput, output: EmbeddingsReport, scope: 'admin', effect: 'reversible' },
  cancelPull: { input: CancelPullInput, output: EmbeddingsReport, scope: 'admin', effect: 'reversible' },
  testEmbeddings: { input: TestEmbeddingsInput, output: EmbeddingsTest, scope: 'admin', effect: 'none' },

  meaning: { input: MeaningInput, output: MeaningReport, scope: 'admin', effect: 'none' },
  // The owner approved or chose the Ollama that receives the facts before.
  setMeaning: { input: SetMeaningInput, output: MeaningReport, scope: 'admin', effect: 'reversible' },
  rebuildMeaning: { input: RebuildMeaningInput, output: MeaningReport, scope: 'admin', effect: 'reversible' },

  mintToken: { input: MintInput, output: MintReceipt, scope: 'admin', effect: 'grants' },
  tokens: { input: TokensInput, output: TokenList, scope: 'admin', effect: 'none' },
  revokeToken: { input: RevokeInput, output: RevokeReceipt, scope: 'admin', effect: 'reversible' },
  pauseToken: {
    input: PauseTokenInput,
    output: PauseReceipt,
    scope: 'admin',
    effect: {
      when: ({ paused }: PauseTokenInput) => !paused,
      condition: 'when `paused` is false',
      effect: 'grants',
      otherwise: 'reversible',
    },
  },
  windowSessions: { input: WindowSessionsInput, output: WindowSessionList, scope: 'admin', effect: 'none' },
  endWindowSession: { input: EndWindowSessionInput, output: EndWindowSessionReceipt, scope: 'admin', effect: 'reversible' },
  clients: { input: ClientsInput, output: ClientList, scope: 'admin', effect: 'none' },
  planConnection: { input: PlanConnectionInput, output: ConnectionPlan, scope: 'admin', effect: 'none' },
  connectClient: { input: ConnectClientInput, output: ConnectReceipt, scope: 'admin', effect: 'grants' },
  disconnectClient: { input: DisconnectClientInput, output: DisconnectReceipt, scope: 'admin', effect: 'reversible' },
  offerPacks: {
    input: PackOffer,
    output: PackOffer,
    scope: 'admin',
    effect: {
      when: ({ packs }: PackOffer) => packs.length > 0,
      condition: 'when `packs` is not empty',
      effect: 'grants',
      otherwise: 'reversible',
    },
  },
  setCapture: {
    input: SetCaptureInput,
    output: CaptureChoice,
    scope: 'admin',
    effect: {
      when: ({ capture, accept }: SetCaptureInput) => capture === true || accept === true,
      condition: 'when `capture` or `accept` is true',
      effect: 'grants',
      otherwise: 'reversible',
    },
  },
  verifyClient: { input: VerifyClientInput, output: ClientVerification, scope: 'admin', effect: 'none' },
  credentials: { input: CredentialsInput, output: CredentialList, scope: 'admin', effect: 'none' },
  setCredential: { input: SetCredentialInput, output: CredentialReceipt, scope: 'admin', effect: 'destroys' },
  dropCredential: { input: DropCredentialInput, output: CredentialReceipt, scope: 'admin', effect: 'destroys' },
  lock: { input: LockInput, output: KeyReport, scope: 'admin', effect: 'reversible' },
  unlock: { input: UnlockInput, output: KeyReport, scope: 'admin', effect: 'grants' },
  rotateKey: { input: RotateKeyInput, output: RotateKeyReceipt, scope: 'admin', effect: 'destroys' },
  makeRecoveryKey: { input: RecoveryKeyInput, output: RecoveryKey, scope: 'admin', effect: 'grants' },
  // Making a backup can delete the oldest backup, because only the newest backups are kept.
  backup: { input: BackupInput, output: BackupReceipt, scope: 'admin', effect: 'destroys' },
  backups: { input: BackupsInput, output: BackupList, scope: 'admin', effect: 'none' },
  trustClock: {
    input: TrustClockInput,
    output: TrustClockReceipt,
    scope: 'admin',
    effect: {
      when: ({ dry_run }: TrustClockInput) => !dry_run,
      condition: 'without `dry_run`',
      effect: 'destroys',
      otherwise: 'none',
    },
  },
  verify: { input: VerifyInput, output: VerifyReport, scope: 'admin', effect: 'none' },
  settings: { input: SettingsInput, output: SettingsReport, scope: 'admin', effect: 'none' },
  changeSetting: { input: ChangeSettingInput, output: SettingRow, scope: 'admin', effect: 'reversible' },
  checkForUpdates: { input: CheckForUpdatesInput, output: UpdateReport, scope: 'admin', effect: 'none' },
} as const satisfies Record<string, Operation>;

export type OperationName = keyof typeof operations;

export type OperationRequest<Name extends OperationName> = z.input<ReturnType<(typeof operations)[Name]['input']>>;
/** The input of an operation after validation, with defaults filled in and text normalized. */
export type OperationInput<Name extends OperationName> = z.output<ReturnType<(typeof operations)[Name]['input']>>;
export type OperationOutput<Name extends OperationName> = z.output<ReturnType<(typeof operations)[Name]['output']>>;

/** Whether an operation has this name. Ignores inherited properties, so `constructor` and `toString` are not operations. */
export const isOperation = (name: string): name is OperationName => Object.hasOwn(operations, name);

export const effectOf = <Name extends OperationName>(name: Name, input: OperationInput<Name>): Effect => {
  const { effect }: Operation = operations[name];
  if (typeof effect === 'string') return effect;
  // TypeScript cannot see that the input belongs to this operation's condition, hence the cast.
  return effect.when(input as never) ? effect.effect : effect.otherwise;
};
