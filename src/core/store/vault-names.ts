/** Marks the vault's texts among the secrets of the database. */
export const VAULT_PREFIX = 'vault ';
/** Names in the vault. A restore decides by them which state of the replaced memory survives. */
export const SIGNING_SECRET = 'signing secret';
export const TOKEN_RECORD = 'token ';
/** Beside the record, so that a start learns of the pause by the name alone. */
export const PAUSED_TOKEN = 'paused token ';
export const CREDENTIAL = 'credential ';
