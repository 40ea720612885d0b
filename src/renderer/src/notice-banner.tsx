import { useTask } from './task.ts';
import { Button } from './ui/button.tsx';

export interface Notice {
  readonly title: string;
  readonly text?: string | undefined;
  /** The label of the button that resolves the notice. */
  readonly button?: string;
}

export function NoticeBanner({ notice: { title, text, button }, run }: { notice: Notice; run: () => Promise<void> }) {
  const task = useTask();
  return (
    <div className="banner">
      <p>
        <strong>{title}.</strong> {task.failure ?? text}
      </p>
      {button !== undefined && <Button label={button} disabled={task.busy} onClick={() => void task.run(run)} />}
    </div>
  );
}
