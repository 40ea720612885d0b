/** Where something went wrong that nobody foresaw: all that may be told of it outside of this process. */
export interface LogEvent {
  readonly operation: string;
  readonly client: string;
}
