/**
 * The admin operations that are recorded as activity, each with the input field that names its target. The field must be a name or
 * an id, never a value, a key or a token.
 */
export const RECORDED_ACTIONS = {
  adoptPipeline: 'id',
  mintToken: 'name',
  revokeToken: 'id',
  pauseToken: 'id',
  endWindowSession: 'id',
  connectClient: 'client',
  disconnectClient: 'client',
  setCredential: 'name',
  dropCredential: 'name',
  changeSetting: 'name',
  setEmbeddings: undefined,
  approveOllama: undefined,
  pullModel: undefined,
  cancelPull: undefined,
  trustClock: undefined,
  lock: undefined,
  unlock: undefined,
  rotateKey: undefined,
  makeRecoveryKey: undefined,
  backup: undefined,
} as const;

export type RecordedAction = keyof typeof RECORDED_ACTIONS;

export const isRecordedAction = (operation: string): operation is RecordedAction => Object.hasOwn(RECORDED_ACTIONS, operation);
