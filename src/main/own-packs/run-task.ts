import { Failure } from '../../contract/failure.ts';
import { PACK } from '../../contract/limits.ts';
import { MIB } from '../../contract/units.ts';
import { type ProgramMessage, PackMessage, type PackTask } from './messages.ts';
import type { PackProcess } from './pack-process.ts';
import { watchProcessMemory } from './process-memory.ts';

/** Limits of one process. A process that exceeds a limit is killed. */
const LIMITS = {
  /** Maximum resident memory. */
  bytes: 256 * MIB,
  /** Maximum size of one message: an output and the fields around it. */
  messageBytes: PACK.outputBytes + 4096,
  messages: 10_000,
  allBytes: 32 * MIB,
  /** Maximum size of the messages that wait for the process to read them. */
  unreadBytes: 8 * MIB,
  /** Time that the process has to stop after the caller cancels the run. */
  graceMs: 250,
} as const;

interface TaskRun {
  readonly process: PackProcess;
  readonly task: PackTask;
  /** Aborted when the caller cancels the run. */
  readonly signal: AbortSignal;
  /** Called with every message except the result. If the function throws, the process is killed. */
  readonly onMessage: (message: PackMessage, answer: (answer: ProgramMessage) => void) => void;
}

/** Signals with which Node exits when its heap is full. */
const OUT_OF_HEAP: ReadonlySet<NodeJS.Signals> = new Set(['SIGABRT', 'SIGILL', 'SIGTRAP']);

type TaskResult = Extract<PackMessage, { is: 'described' | 'done' | 'failed' }>;

/** Sends the task to a process and waits for the result. The process has exited when the returned promise settles. */
export async function runTask({ process, task, signal, onMessage }: TaskRun): Promise<TaskResult> {
  const { name } = task;
  const { channel, pid } = process;
  const { promise, resolve, reject } = Promise.withResolvers<TaskResult>();
  const refuse = (code: 'handler_failed' | 'invalid_output', why: string): void => reject(new Failure(code, `${name} ${why}`));
  const send = (answer: PackTask | ProgramMessage): void => {
    if (channel.destroyed) return;
    channel.write(`${JSON.stringify(answer)}\n`);
    if (channel.writableLength > LIMITS.unreadBytes)
      refuse('handler_failed', "does not read the responses to its requests; tell the pack's author.");
  };

  const lines = boundedLines();
  channel.on('error', () => undefined);
  channel.on('data', (chunk: Buffer) => {
    try {
      for (const line of lines(chunk)) {
        const message = PackMessage().parse(JSON.parse(line));
        if (message.is === 'described' || message.is === 'done' || message.is === 'failed') resolve(message);
        else onMessage(message, send);
      }
    } catch (error) {
      if (error instanceof LimitExceeded) refuse(error.code, error.message);
      else refuse('handler_failed', "sent an invalid message; tell the pack's author.");
    }
  });
  const exceedMemory = (): void =>
    refuse('handler_failed', `used more than ${LIMITS.bytes / MIB} MiB of memory and was stopped; request less data.`);
  // Wait for the channel to close, not for the process to exit: an exited process can leave unread messages.
  channel.once('close', () => {
    // Do not kill the process here. Its channel closes before the sandbox program reports the signal that ended the process, and
    // a kill would replace that signal. A process that closes its channel but continues is killed at the run's time limit.
    void process.ended.then((by) =>
      by !== undefined && OUT_OF_HEAP.has(by)
        ? exceedMemory()
        : refuse('handler_failed', "exited before it returned a result; tell the pack's author."),
    );
  });
  using _memoryWatch = pid === undefined ? undefined : watchProcessMemory(pid, LIMITS.bytes, exceedMemory);

  const abort = (): void => {
    send({ is: 'abort' });
    setTimeout(() => refuse('handler_failed', 'was stopped.'), LIMITS.graceMs);
  };
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  send(task);
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', abort);
    process.kill();
    await process.ended;
  }
}

class LimitExceeded extends Error {
  readonly code: 'handler_failed' | 'invalid_output';

  constructor(code: LimitExceeded['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** Splits the input into lines. Buffers at most one line, so that a process that floods the channel cannot fill the memory. */
function boundedLines(): (chunk: Buffer) => Generator<string> {
  let buffered: Buffer[] = [];
  let bufferedBytes = 0;
  let all = 0;
  let count = 0;
  return function* lines(chunk) {
    all += chunk.length;
    if (all > LIMITS.allBytes) throw new LimitExceeded('handler_failed', "sent too many messages; tell the pack's author.");
    for (let rest = chunk; ;) {
      const end = rest.indexOf(0x0a);
      const part = end === -1 ? rest : rest.subarray(0, end);
      bufferedBytes += part.length;
      if (bufferedBytes > LIMITS.messageBytes) {
        throw new LimitExceeded('invalid_output', `returned more than ${PACK.outputBytes / 1024} KiB; request less data.`);
      }
      buffered.push(part);
      if (end === -1) return;
      if ((count += 1) > LIMITS.messages)
        throw new LimitExceeded('handler_failed', "sent too many messages; tell the pack's author.");
      const line = Buffer.concat(buffered).toString();
      buffered = [];
      bufferedBytes = 0;
      rest = rest.subarray(end + 1);
      yield line;
    }
  };
}
