import type { FailureCode } from './failure.ts';
import type { OperationName, OperationOutput, OperationRequest } from './operations.ts';
import type { ListeningState } from './status.ts';

/**
 * A response to the window. Failures are sent as values, because an exception would lose its code when Electron's IPC copies it.
 */
export type BridgeResponse =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: FailureCode; readonly message: string };

/** An event for the window: entries of `kind` have changed in `namespace` and must be read again. */
export interface WindowChange {
  readonly namespace: string;
  readonly kind: string;
}

/**
 * The window's connection to the program, over HTTP or Electron's IPC. The window can use any subject, because it belongs to the
 * owner.
 */
export interface Bridge {
  readonly place: 'browser' | 'desktop';
  /** Calls an operation. Aborting the signal cancels the operation, if the operation supports cancellation. */
  call(subject: string, name: string, input: unknown, signal?: AbortSignal): Promise<BridgeResponse>;
  /**
   * Calls the listener after each change. After a reconnect, calls it with undefined, because changes could have been missed.
   * Returns a function that unsubscribes.
   */
  onChange(listener: (change: WindowChange | undefined) => void): () => void;
}

/**
 * The interface that Electron's preload script exposes to the page. An AbortSignal cannot be passed, so calls are cancelled by
 * `callId`.
 */
export interface PreloadBridge extends Pick<Bridge, 'place' | 'onChange'> {
  call(subject: string, name: string, input: unknown, callId?: string): Promise<BridgeResponse>;
}

export type MemoryClient = <Name extends OperationName>(
  name: Name,
  input: OperationRequest<Name>,
  signal?: AbortSignal,
) => Promise<OperationOutput<Name>>;

/**
 * Calls that only the desktop window supports, each with the type of its result. A browser does not need these calls: it reaches
 * the window through the listener, and it cancels a call by closing the connection. When the listener's state changes, the
 * desktop window receives a `WindowChange` of the kind `listening` with an empty namespace.
 */
export interface DesktopCalls {
  /** Cancels the call with the given id. `cancelled` is false if that call had already ended. */
  cancel: { readonly cancelled: boolean };
  listening: ListeningState;
  resumeListening: ListeningState;
  /** Shows the extension bundle for Claude Desktop in the system's file manager. */
  showBundle: { readonly shown: true };
  /**
   * `starts`: whether the system starts the program at login. Absent if the system does not support that. `hidden`: whether the
   * program then starts without showing its window.
   */
  atLogin: { readonly starts?: boolean; readonly hidden: boolean };
  /** Changes the settings of `atLogin` and returns the new settings. */
  chooseAtLogin: DesktopCalls['atLogin'];
  /** Tells the program whether the page has unsaved input, so that the program can ask before it quits. */
  unsaved: { readonly unsaved: boolean };
}
