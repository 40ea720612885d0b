const APPLE = /Mac|iP(hone|ad)/.test(navigator.platform);

const SYMBOLS: Readonly<Record<string, string>> = {
  mod: APPLE ? '⌘' : 'Ctrl ',
  shift: '⇧',
  Enter: '⏎',
  Backspace: '⌫',
  ArrowDown: '↓',
  ArrowUp: '↑',
  ArrowRight: '→',
  ArrowLeft: '←',
  Escape: 'Esc',
  Delete: 'Del',
  ' ': 'Space',
};

export function Kbd({ shortcut }: { shortcut: string }) {
  const keys = shortcut === ' ' ? [' '] : shortcut.split('+');
  return <kbd>{keys.map((key) => SYMBOLS[key] ?? (key.length === 1 ? key.toUpperCase() : key)).join('')}</kbd>;
}
