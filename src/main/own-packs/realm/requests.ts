import type { ProgramMessage, PackMessage } from '../messages.ts';
import { callHost } from './host.ts';

/** Maximum concurrent requests to the program. Further requests wait. */
const MAX_CONCURRENT = 16;

/** Thrown if the program refused a request. If the pack does not catch this error, the run fails with the program's message. */
export class RequestRefused extends Error {
  readonly id: number;

  constructor(id: number, message: string) {
    super(message);
    this.id = id;
  }
}

const answers = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
const waiting: (() => void)[] = [];
let lastId = 0;

export async function requestFromProgram(operation: string, ...parameters: unknown[]): Promise<unknown> {
  while (answers.size >= MAX_CONCURRENT) await new Promise<void>((resolve) => waiting.push(resolve));
  const id = (lastId += 1);
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  answers.set(id, { resolve, reject });
  callHost('send', JSON.stringify({ is: 'request', id, operation, parameters } satisfies PackMessage));
  return await promise;
}

export function handleAnswer(message: Exclude<ProgramMessage, { is: 'abort' }>): void {
  const answer = answers.get(message.id);
  answers.delete(message.id);
  waiting.shift()?.();
  if (message.is === 'answer') answer?.resolve(message.value);
  else answer?.reject(new RequestRefused(message.id, message.message));
}
