import type { FailureCode } from './failure.ts';
import type { OperationName, OperationOutput, OperationRequest } from './operations.ts';
import type { ListeningState } from './status.ts';

/** An answer as it crosses to the window: a failure keeps its code, which an exception would lose on the way. */
export type BridgeResponse =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: FailureCode; readonly message: string };

/** Something changed in a memory; what, has to be asked. */
export interface WindowChange {
  readonly namespace: string;
  readonly kind: string;
}

/**
 * All that the window knows of the program: the same over a loopback connection and in Electron. It is the owner's, so it may
 * say whose memory is open, one at a time.
 */
export interface Bridge {
  readonly place: 'browser' | 'desktop';
  /** When the signal is aborted the answer is wanted no more, and what can be stopped is. */
  call(subject: string, name: string, input: unknown, signal?: AbortSignal): Promise<BridgeResponse>;
  /** Undefined: anything may have changed, because for a while nothing could be heard. The result takes it back. */
  onChange(listener: (change: WindowChange | undefined) => void): () => void;
}

/** What the preload puts into the page. No signal can pass it, so a call that may be given up brings a word to name it by. */
export interface PreloadBridge extends Pick<Bridge, 'place' | 'onChange'> {
  call(subject: string, name: string, input: unknown, callId?: string): Promise<BridgeResponse>;
}

/** The same with types, for one memory. */
export type MemoryClient = <Name extends OperationName>(
  name: Name,
  input: OperationRequest<Name>,
  signal?: AbortSignal,
) => Promise<OperationOutput<Name>>;

/**
 * What only the desktop can be asked, by the same call. A browser got here through the listener, so there it stands, and gives up a call
 * by hanging up. That the listener changed is told as a change of this kind, in no namespace.
 */
export interface DesktopCalls {
  /** Gives up the call that brought this word; whether it was still under way. */
  cancel: { readonly cancelled: boolean };
  listening: ListeningState;
  /** Tries once more; the answer is how it went. */
  resumeListening: ListeningState;
  /** Shows the bundle for Claude Desktop where it lies, in the system's own window of files. */
  showBundle: { readonly shown: true };
  /** Whether the system starts the program with its owner's session, where it can, and whether it then shows no window. */
  atLogin: { readonly starts?: boolean; readonly hidden: boolean };
  /** Changes either; the answer is how it is then. */
  chooseAtLogin: DesktopCalls['atLogin'];
  /** Tells whether the page holds something that was typed and not saved, which whoever quits would lose. */
  unsaved: { readonly unsaved: boolean };
}
