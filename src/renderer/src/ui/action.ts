/** A command that the palette lists, with its keyboard shortcuts. */
export interface Action {
  readonly name: string;
  /** Names as in `KeyboardEvent.key`, with `mod+` for Ctrl or Command. The palette shows the first one. */
  readonly keys?: readonly string[];
  /** Whether keys with `mod+` also work in text fields. */
  readonly whileTyping?: true;
  readonly run: () => void;
}
