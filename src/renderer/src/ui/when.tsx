import { fullDate } from '../time.ts';

/** A time. The tooltip has the full date where a narrow row shows only a part of it. */
export function When({ at, short }: { at: string | number; short?: string }) {
  const full = fullDate(at);
  return (
    <time dateTime={new Date(at).toISOString()} title={full}>
      {short ?? full}
    </time>
  );
}
