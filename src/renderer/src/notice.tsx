import './banner.css';
import { useDoing } from './doing.ts';

export interface Notice {
  readonly title: string;
  readonly says?: string | undefined;
  /** The name of what can be done about it. */
  readonly act?: string;
}

export function Told({ notice: { title, says, act }, run }: { notice: Notice; run: () => Promise<void> }) {
  const doing = useDoing();
  return (
    <div className="banner">
      <p>
        <strong>{title}.</strong> {doing.failure ?? says}
      </p>
      {act !== undefined && (
        <button type="button" className="button" disabled={doing.busy} onClick={() => void doing.run(run)}>
          {act}
        </button>
      )}
    </div>
  );
}
