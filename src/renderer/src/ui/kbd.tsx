const APPLE = /Mac|iP(hone|ad)/.test(navigator.platform);

const SIGNS: Readonly<Record<string, string>> = {
  Enter: '⏎',
  Backspace: '⌫',
  ArrowRight: '→',
  ArrowLeft: '←',
  Escape: 'Esc',
  Delete: 'Del',
  ' ': 'Space',
};

/** A key as it stands on the keyboard. */
export function Kbd({ spelled }: { spelled: string }) {
  const parts = spelled === ' ' ? [' '] : spelled.split('+');
  const shown = parts.map((part) => {
    if (part === 'mod') return APPLE ? '⌘' : 'Ctrl ';
    if (part === 'shift') return '⇧';
    return SIGNS[part] ?? (part.length === 1 ? part.toUpperCase() : part);
  });
  return <kbd>{shown.join('')}</kbd>;
}
