import type { Mark } from '../../../contract/fact.ts';

const REASONS: Readonly<Record<Mark, string>> = {
  instructions: 'This text gives instructions to the model that reads it.',
  hidden: 'This text has hidden or misleading characters.',
  framing: 'This text looks like a message of the system or of another role.',
};

/** Warns about suspicious text. `isHeld` is set for an item of the Inbox, which no agent can read yet. */
export function MarkNote({ mark, isHeld }: { mark: Mark; isHeld?: true }) {
  return (
    <p className="mark">
      <strong>Suspicious.</strong> {REASONS[mark]}{' '}
      {isHeld
        ? 'If you keep it, agents find it only when they search, with this warning.'
        : 'Agents find it only when they search, with this warning.'}
    </p>
  );
}
