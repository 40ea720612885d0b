// Keep the original functions: the pack could replace the built-in ones with functions that would receive the paths in stacks.
const { apply } = Reflect;
// oxlint-disable-next-line typescript/unbound-method -- Called with Reflect.apply.
const { startsWith } = String.prototype;

interface Frame {
  getFileName(): string | null;
  toString(): string;
}

/**
 * Limits error stacks to the pack's own frames. All other frames contain paths of this installation. The pack cannot install its
 * own stack formatter, because a formatter can read these paths.
 */
export function hideForeignFrames(): void {
  Object.defineProperty(Error, 'prepareStackTrace', {
    get: () => formatStack,
    set() {
      // Ignore the formatter instead of throwing, so that libraries that set a formatter still work.
    },
  });
  // Lock the global `Error`, because V8 looks up the formatter there.
  Object.defineProperty(globalThis, 'Error', { writable: false, configurable: false });
}

function formatStack(error: unknown, frames: readonly Frame[]): string {
  let text = 'Error';
  try {
    text = String(error);
  } catch {
    // Ignore the error: the pack's own toString threw it.
  }
  for (let at = 0; at < frames.length; at += 1) {
    const file = frames[at]?.getFileName() ?? '';
    if (apply(startsWith, file, ['pack:'])) text += `\n    at ${frames[at]?.toString()}`;
  }
  return text;
}
