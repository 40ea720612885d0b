import { Failure } from '../contract/failure.ts';
import { findSecret } from './secret-guard.ts';

interface Texts {
  readonly key?: string;
  readonly value?: string;
  readonly tags?: readonly string[];
}

/** Memory is read by every agent, and a credential does not belong there: it is refused, or, if the owner says so, warned about. */
export function refuseSecrets(setting: 'refuse' | 'warn', texts: Texts): string | undefined {
  const found = credentialIn(texts);
  if (!found) return undefined;
  const looks = `${found.field} looks like ${found.kind}`;
  if (setting === 'warn') return `${looks}; better keep it in a password manager and forget it here.`;
  throw new Failure('invalid_input', `${looks}; keep it in a password manager or vault, and remember only where it is.`);
}

function credentialIn({ key = '', value = '', tags = [] }: Texts): { field: string; kind: string } | undefined {
  // A value that says nothing by itself may be a password under the name it is given.
  const named = value === '' ? [] : [{ field: 'value', text: `${key}: ${value}` }];
  const texts = [{ field: 'value', text: value }, { field: 'key', text: key }, ...named, ...tags.map(asTag)];
  for (const { field, text } of texts) {
    const secret = findSecret(text);
    if (secret) return { field, kind: secret.kind };
  }
  return undefined;
}

const asTag = (text: string): { field: string; text: string } => ({ field: 'tags', text });
