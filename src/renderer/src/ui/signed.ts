interface Signed {
  readonly client: string;
  readonly defined_by?: string | undefined;
}

/** The client that wrote something, and the one whose pipeline made it write. */
export const signed = ({ client, defined_by: definer }: Signed): string =>
  definer === undefined ? client : `${client}, by a pipeline of ${definer}`;
