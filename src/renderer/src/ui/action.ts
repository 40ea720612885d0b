/** A command that the palette lists, with its keyboard shortcuts. */
export interface Action {
  readonly name: string;
  /** Shortcuts, spelled as in `KeyboardEvent.key`, with `mod+` for Ctrl or Command. The palette shows only the first shortcut. */
  readonly keys?: readonly string[];
  /** Whether shortcuts with `mod+` also work in text fields. */
  readonly whileTyping?: true;
  readonly run: () => void;
}
