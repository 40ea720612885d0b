/** What was typed is no command line of ours. Nothing has been tried. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  /** Where the help continues: the name of a command, or nothing. */
  readonly helpTopic: string;

  constructor(message: string, about = '') {
    super(message);
    this.helpTopic = about;
  }
}
