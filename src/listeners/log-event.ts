/** Where an unexpected error happened. Logs hold nothing else about it, because an error may quote a fact. */
export interface LogEvent {
  readonly operation: string;
  readonly client: string;
}
