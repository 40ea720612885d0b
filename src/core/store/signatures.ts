interface Signed {
  readonly client: string;
  readonly definedBy?: string | undefined;
}

/** Everyone who answers for an entry, as each answer names them. */
export const signatures = ({ client, definedBy }: Signed): { client: string; defined_by?: string } => ({
  client,
  ...(definedBy !== undefined && { defined_by: definedBy }),
});
