import { fullDate } from '../time.ts';

/** A moment in full; a narrow row may show less of it, and has the rest in its title. */
export function When({ at, short }: { at: string | number; short?: string }) {
  const full = fullDate(at);
  return (
    <time dateTime={new Date(at).toISOString()} title={full}>
      {short ?? full}
    </time>
  );
}
