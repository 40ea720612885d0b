import { findSecret } from '../operations/secret-guard.ts';
import type { Credential } from './pack.ts';

/**
 * Returns why an output must not be stored in the cache, in a pack's memory or in a run record. Returns undefined if it can be
 * stored.
 */
export function whyPrivate(json: string, credential?: Credential): string | undefined {
  if (findSecret(json) || containsCredential(json, credential)) return 'it looks like a credential, which is never stored';
  if (containsPrivateHeaders(json)) return 'its HTTP headers set a cookie or forbid storing it';
  return undefined;
}

/**
 * Whether the output contains HTTP headers that forbid caching (R-PACK-04). A page that merely mentions such a header is also
 * not cached, which only costs another run.
 */
const containsPrivateHeaders = (json: string): boolean =>
  /set-cookie/i.test(json) || /cache-control[\\"'\s:,=[]{1,12}[^\\"'\n]{0,200}(?:no-store|no-cache|private)/i.test(json);

/** Whether the output contains the credential that was sent, whatever its format. */
const containsCredential = (json: string, credential: Credential | undefined): boolean =>
  credential !== undefined && json.includes(JSON.stringify(credential.secret).slice(1, -1));
