/** Thrown if the command line is invalid, before the command changes anything. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  /** Command whose help is suggested to the user. Empty for the general help. */
  readonly helpTopic: string;

  constructor(message: string, about = '') {
    super(message);
    this.helpTopic = about;
  }
}

/** Thrown in a command when its process receives a signal, so that the command can clean up before it exits. */
export class Interrupted extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super('Interrupted.');
    this.exitCode = exitCode;
  }
}

/** Thrown if the program that reads the output, such as `head`, closes the pipe. The command still counts as successful. */
export class OutputClosed extends Error {}
