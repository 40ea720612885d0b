import { callHost } from './host.ts';

/** Encodes bytes as the characters U+0000 to U+00FF, because the realms exchange only strings. */
function toBinaryString(bytes: ArrayBufferView | ArrayBuffer): string {
  const view = ArrayBuffer.isView(bytes)
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new Uint8Array(bytes);
  let binary = '';
  for (let at = 0; at < view.length; at += 8192) binary += String.fromCharCode(...view.subarray(at, at + 8192));
  return binary;
}

const fromBinaryString = (binary: string): Uint8Array<ArrayBuffer> => Uint8Array.from(binary, (char) => char.charCodeAt(0));

/** The web's `TextEncoder` for UTF-8. */
export class Encoder {
  readonly encoding = 'utf-8';

  encode(text: unknown = ''): Uint8Array {
    return fromBinaryString(callHost('encode', String(text)));
  }
}

/** The web's `TextDecoder` for UTF-8. A malformed sequence becomes U+FFFD. */
export class Decoder {
  readonly encoding = 'utf-8';

  decode(bytes: ArrayBufferView | ArrayBuffer = new Uint8Array()): string {
    return callHost('decode', toBinaryString(bytes));
  }
}

export const atob = (text: unknown): string => {
  const answer = callHost('atob', String(text));
  if (answer === '-') throw new TypeError('The text to decode is not valid Base64.');
  return answer.slice(1);
};

export const btoa = (text: unknown): string => {
  const binary = String(text);
  if (/[^\0-\xff]/.test(binary)) throw new TypeError('btoa accepts only the characters U+0000 to U+00FF');
  return callHost('btoa', binary);
};

const HASHES = ['SHA-1', 'SHA-256', 'SHA-384', 'SHA-512'];

export const crypto = {
  randomUUID: (): string => callHost('uuid', ''),

  getRandomValues<Numbers extends ArrayBufferView>(numbers: Numbers): Numbers {
    if (numbers.byteLength > 65_536) throw new RangeError('getRandomValues fills at most 65,536 bytes');
    const bytes = fromBinaryString(callHost('random', String(numbers.byteLength)));
    new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength).set(bytes);
    return numbers;
  },

  subtle: {
    // Asynchronous, like the web's API.
    async digest(algorithm: unknown, bytes: ArrayBufferView | ArrayBuffer): Promise<ArrayBuffer> {
      const name = String(algorithm).toUpperCase();
      if (!HASHES.includes(name)) throw new TypeError(`digest supports only ${HASHES.join(', ')}`);
      return fromBinaryString(callHost(name, toBinaryString(bytes))).buffer;
    },
  },
};
