import { Failure } from '../contract/failure.ts';

const ALIVE = JSON.stringify({ status: 'ok' });
/** Long enough that no answer to it was ever given before. */
const CHALLENGE = /^challenge=([\w-]{16,128})$/;

/** The one thing told to whoever asks: that something is here, and, to its owner's programs, that it is ours (R-HTTP-11). */
export function healthResponse(query: string, prove: (challenge: string) => string): string {
  if (query === '') return ALIVE;
  const challenge = CHALLENGE.exec(query)?.[1];
  if (challenge !== undefined) return JSON.stringify({ status: 'ok', proof: prove(challenge) });
  throw new Failure('invalid_input', 'This takes a challenge of 16 to 128 letters, digits, "_" and "-", or no query at all.');
}
