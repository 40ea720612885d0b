// Stored here, because the pack can replace the built-in functions and would receive the paths.
const { apply } = Reflect;
// oxlint-disable-next-line typescript/unbound-method -- Called with Reflect.apply.
const { startsWith } = String.prototype;

interface Frame {
  getFileName(): string | null;
  toString(): string;
}

/**
 * Limits error stacks to the pack's own frames. The other frames contain paths of this installation, and call sites expose them
 * too, so the pack cannot install another formatter.
 */
export function hideForeignFrames(): void {
  Object.defineProperty(Error, 'prepareStackTrace', {
    get: () => formatStack,
    set() {
      // Ignored: libraries that set a formatter keep working.
    },
  });
  // V8 looks the formatter up in the global Error.
  Object.defineProperty(globalThis, 'Error', { writable: false, configurable: false });
}

function formatStack(error: unknown, frames: readonly Frame[]): string {
  let text = 'Error';
  try {
    text = String(error);
  } catch {
    // The pack's own toString threw.
  }
  for (let at = 0; at < frames.length; at += 1) {
    const file = frames[at]?.getFileName() ?? '';
    if (apply(startsWith, file, ['pack:'])) text += `\n    at ${frames[at]?.toString()}`;
  }
  return text;
}
