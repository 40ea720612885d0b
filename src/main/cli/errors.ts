/** The command line is invalid. Nothing was attempted. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  /** The command whose help to suggest, if any. */
  readonly helpTopic: string;

  constructor(message: string, about = '') {
    super(message);
    this.helpTopic = about;
  }
}

/** A signal arrived. Thrown by the running command so that it can clean up before it exits. */
export class Interrupted extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super('Interrupted.');
    this.exitCode = exitCode;
  }
}

/** The reader closed our output, as `head` does. This is not a failure. */
export class OutputClosed extends Error {}
