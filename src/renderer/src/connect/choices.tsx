import type { ConnectionPlan } from '../../../contract/client.ts';
import { Check } from '../ui/field.tsx';

/** OpenClaw has a second row for its embeddings settings. The second row is not an agent. */
export const EMBEDDINGS_ROW = 'openclaw-embeddings';

export type HookEvents = NonNullable<ConnectionPlan['hooks']>;

const HOOK_LABELS = { session: 'At the start of a session', prompt: 'Before each prompt' } as const;
const HOOK_HINTS = {
  session: 'Preferences, conventions, and what belongs to the project. At most 1 kB.',
  prompt: 'Only facts that fit the prompt. Usually nothing.',
} as const;

interface HooksProps {
  readonly name: string;
  /** The events for which the agent has hooks. */
  readonly possible: HookEvents;
  readonly events: HookEvents;
  readonly change: (events: HookEvents) => void;
}

/** Chooses the moments at which the agent is shown facts without asking for them. */
export function HookChoice({ name, possible, events, change }: HooksProps) {
  return (
    <fieldset className="checks">
      <legend>Show facts to {name} without being asked</legend>
      {possible.map((event) => (
        <Check
          key={event}
          label={HOOK_LABELS[event]}
          hint={HOOK_HINTS[event]}
          checked={events.includes(event)}
          change={(checked) => change(possible.filter((one) => (one === event ? checked : events.includes(one))))}
        />
      ))}
    </fieldset>
  );
}

interface Props {
  /** Name of the agent or program. */
  readonly name: string;
  readonly checked: boolean;
  readonly change: (checked: boolean) => void;
  readonly disabled?: boolean;
}

export function QuarantineChoice({ name, ...rest }: Props) {
  return (
    <Check
      label={`Keep ${name} in quarantine`}
      hint="Everything it wants to store, change or forget waits in the Inbox until you allow it."
      {...rest}
    />
  );
}

export function CaptureChoice({ name, ...rest }: Props) {
  return (
    <Check
      label={`Propose facts from what I say to ${name}`}
      hint="Lasting statements, such as “always use pnpm”, wait in the Inbox. Rules find them, not a model. Nothing else of a prompt is kept."
      {...rest}
    />
  );
}

export function AcceptChoice(props: Omit<Props, 'name'>) {
  return (
    <Check
      label="Store such facts at once"
      hint="They do not wait in the Inbox. Suspicious text, and everything from an agent in quarantine, still waits."
      {...props}
    />
  );
}
