import { fullDate } from '../time.ts';

/** Shows a time, or its short form in a narrow row. The tooltip always has the full date. */
export function When({ at, short }: { at: string | number; short?: string }) {
  const full = fullDate(at);
  return (
    <time dateTime={new Date(at).toISOString()} title={full}>
      {short ?? full}
    </time>
  );
}
