import { callHost } from './host.ts';

/** Encodes bytes as the characters U+0000 to U+00FF, which is how bytes cross to the process. */
function lettersOf(bytes: ArrayBufferView | ArrayBuffer): string {
  const view = ArrayBuffer.isView(bytes)
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new Uint8Array(bytes);
  let letters = '';
  for (let at = 0; at < view.length; at += 8192) letters += String.fromCharCode(...view.subarray(at, at + 8192));
  return letters;
}

const bytesOf = (letters: string): Uint8Array<ArrayBuffer> => Uint8Array.from(letters, (letter) => letter.charCodeAt(0));

/** UTF-8 only. */
export class Encoder {
  readonly encoding = 'utf-8';

  encode(text: unknown = ''): Uint8Array {
    return bytesOf(callHost('encode', String(text)));
  }
}

/** UTF-8 only. A malformed sequence becomes U+FFFD. */
export class Decoder {
  readonly encoding = 'utf-8';

  decode(bytes: ArrayBufferView | ArrayBuffer = new Uint8Array()): string {
    return callHost('decode', lettersOf(bytes));
  }
}

export const atob = (text: unknown): string => {
  const answer = callHost('atob', String(text));
  if (answer === '-') throw new TypeError('The string to be decoded is not correctly encoded.');
  return answer.slice(1);
};

export const btoa = (text: unknown): string => {
  const letters = String(text);
  if (/[^\0-\xff]/.test(letters)) throw new TypeError('btoa accepts only the characters U+0000 to U+00FF');
  return callHost('btoa', letters);
};

const HASHES = ['SHA-1', 'SHA-256', 'SHA-384', 'SHA-512'];

export const crypto = {
  randomUUID: (): string => callHost('uuid', ''),

  getRandomValues<Numbers extends ArrayBufferView>(numbers: Numbers): Numbers {
    if (numbers.byteLength > 65_536) throw new RangeError('getRandomValues fills at most 65,536 bytes');
    const bytes = bytesOf(callHost('random', String(numbers.byteLength)));
    new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength).set(bytes);
    return numbers;
  },

  subtle: {
    // Asynchronous, as in the web's API.
    async digest(algorithm: unknown, bytes: ArrayBufferView | ArrayBuffer): Promise<ArrayBuffer> {
      const name = String(algorithm).toUpperCase();
      if (!HASHES.includes(name)) throw new TypeError(`digest supports only ${HASHES.join(', ')}`);
      return bytesOf(callHost(name, lettersOf(bytes))).buffer;
    },
  },
};
