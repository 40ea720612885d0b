import type { ProgramMessage, PackMessage } from '../messages.ts';
import { callHost } from './host.ts';

/** Concurrent requests to the program; further ones wait. */
const AT_ONCE = 16;

/** The program refused a request. A pack that does not catch this fails with the program's message. */
export class Refused extends Error {
  readonly id: number;

  constructor(id: number, message: string) {
    super(message);
    this.id = id;
  }
}

const answers = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
const waiting: (() => void)[] = [];
let asked = 0;

export async function askProgram(what: string, ...given: unknown[]): Promise<unknown> {
  while (answers.size >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  const id = asked;
  asked += 1;
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  answers.set(id, { resolve, reject });
  callHost('say', JSON.stringify({ is: 'ask', id, what, with: given } satisfies PackMessage));
  return await promise;
}

export function hearAnswer(heard: Exclude<ProgramMessage, { is: 'abort' }>): void {
  const answer = answers.get(heard.id);
  answers.delete(heard.id);
  waiting.shift()?.();
  if (heard.is === 'answer') answer?.resolve(heard.value);
  else answer?.reject(new Refused(heard.id, heard.message));
}
