import type { FailureCode } from './failure.ts';
import type { OperationName, OperationOutput, OperationRequest } from './operations.ts';
import type { ListeningState } from './status.ts';

/** A response to the window. Failures are values, because an exception would lose its code on the way. */
export type BridgeResponse =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: FailureCode; readonly message: string };

/** Reports that entries of a kind changed in a memory. The window then reads them again. */
export interface WindowChange {
  readonly namespace: string;
  readonly kind: string;
}

/** The window's connection to the program, over HTTP or Electron's IPC. The window belongs to the owner, so it chooses the subject. */
export interface Bridge {
  readonly place: 'browser' | 'desktop';
  /** Aborting the signal cancels the operation, if it can be cancelled. */
  call(subject: string, name: string, input: unknown, signal?: AbortSignal): Promise<BridgeResponse>;
  /** The change is undefined after a reconnect: anything may have changed. Returns a function that unsubscribes. */
  onChange(listener: (change: WindowChange | undefined) => void): () => void;
}

/** What the preload exposes to the page. It cannot pass an AbortSignal, so a call that may be cancelled has an id. */
export interface PreloadBridge extends Pick<Bridge, 'place' | 'onChange'> {
  call(subject: string, name: string, input: unknown, callId?: string): Promise<BridgeResponse>;
}

/** Calls operations on one memory, with types. */
export type MemoryClient = <Name extends OperationName>(
  name: Name,
  input: OperationRequest<Name>,
  signal?: AbortSignal,
) => Promise<OperationOutput<Name>>;

/**
 * Calls that only the desktop offers. A browser does not need them: it reaches the window through the listener, and cancels a call by
 * closing the connection. A change of the listener is reported as a `WindowChange` of the kind `listening` without a namespace.
 */
export interface DesktopCalls {
  /** Cancels the call with this id. `cancelled` is false if it had ended. */
  cancel: { readonly cancelled: boolean };
  listening: ListeningState;
  /** Starts the listener again and returns its new state. */
  resumeListening: ListeningState;
  /** Shows the bundle for Claude Desktop in the system's file manager. */
  showBundle: { readonly shown: true };
  /** Whether the system starts the program at login (absent if it cannot), and whether the program then shows no window. */
  atLogin: { readonly starts?: boolean; readonly hidden: boolean };
  /** Changes these settings and returns the new ones. */
  chooseAtLogin: DesktopCalls['atLogin'];
  /** Tells the program whether the page has unsaved input, which would be lost on quit. */
  unsaved: { readonly unsaved: boolean };
}
