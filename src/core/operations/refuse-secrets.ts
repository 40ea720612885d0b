import { Failure } from '../../contract/failure.ts';
import { findSecret } from './secret-guard.ts';

interface Texts {
  readonly key?: string;
  readonly value?: string;
  readonly tags?: readonly string[];
  /** Stands in clear in the file. */
  readonly category?: string;
}

/** Memory is read by every agent, and a credential does not belong there: it is refused, or, if the owner says so, warned about. */
export function refuseSecrets(setting: 'refuse' | 'warn', texts: Texts): string | undefined {
  return refuse(setting, credentialIn(texts));
}

/** The same of what is more than texts, field by field. */
export function refuseSecretsIn(setting: 'refuse' | 'warn', fields: object): string | undefined {
  for (const [field, value] of Object.entries(fields)) {
    // Names tell what values are.
    const secret = findSecret(JSON.stringify(value));
    if (secret) return refuse(setting, { field, kind: secret.kind });
  }
  return undefined;
}

function refuse(setting: 'refuse' | 'warn', found: Found | undefined): string | undefined {
  if (!found) return undefined;
  const looks = `${found.field} looks like ${found.kind}`;
  if (setting === 'warn') return `${looks}; better keep it in a password manager and forget it here.`;
  throw new Failure('invalid_input', `${looks}; keep it in a password manager or vault, and remember only where it is.`);
}

/** Under a telling name a short text may be a password that says nothing by itself. */
const SHORT = 256;

interface Found {
  readonly field: string;
  readonly kind: string;
}

function credentialIn({ key = '', value = '', tags = [], category = '' }: Texts): Found | undefined {
  const named = value !== '' && value.length <= SHORT ? [`${key}: ${value}`] : [];
  // Nearly always there is nothing, and one look says so.
  const any = findSecret([value, key, ...named, ...tags, category].join('\n'));
  if (!any) return undefined;
  for (const [field, texts] of Object.entries({ value: [value], key: [key], tags, category: [category] })) {
    for (const text of texts) {
      const secret = findSecret(text);
      if (secret) return { field, kind: secret.kind };
    }
  }
  return { field: 'value', kind: any.kind };
}
