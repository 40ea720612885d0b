import type { MintReceipt, TokenScope } from '../../contract/token.ts';

/** The record of a token, stored in the vault as JSON. */
export interface TokenRecord {
  readonly name: string;
  readonly client: string;
  readonly subject: string;
  readonly scopes: readonly TokenScope[];
  readonly created: number;
  readonly expires: number;
  /** The id of the token without which this token is not valid. */
  readonly of?: string;
  readonly used?: number;
  readonly quarantined?: true;
}

export const time = (moment: number): string => new Date(moment).toISOString();

export const summaryOf = (
  id: string,
  { name, client, subject, scopes, created, expires, quarantined }: TokenRecord,
): Omit<MintReceipt, 'token'> => ({
  id,
  name,
  client,
  subject,
  scopes: [...scopes],
  created_at: time(created),
  expires_at: time(expires),
  ...(quarantined && { quarantined }),
});
