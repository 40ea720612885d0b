import type { Mark } from '../../../contract/fact.ts';

const REASONS: Readonly<Record<Mark, string>> = {
  instructions: 'This text gives instructions to the model that reads it.',
  hidden: 'This text has hidden or misleading characters.',
  framing: 'This text looks like a message of the system or of another role.',
};

/** Warns the owner about suspicious text. */
export function MarkNote({ mark }: { mark: Mark }) {
  return (
    <p className="mark">
      <strong>Suspicious.</strong> {REASONS[mark]} Agents get such a fact only when they search, and with this warning.
    </p>
  );
}
