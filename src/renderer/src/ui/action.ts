/** Something the owner can do. It is in the palette, and its keys are learnt there. */
export interface Action {
  readonly name: string;
  /** As the browser names them, with `mod+` for the key that commands; the first is the one that is shown. */
  readonly keys?: readonly string[];
  /** With `mod+` its keys act also while text is typed. */
  readonly whileTyping?: true;
  readonly run: () => void;
}
