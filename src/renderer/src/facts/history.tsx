import { useState } from 'react';
import type { FactDetail, FactVersion } from '../../../contract/fact.ts';
import { useAsked, useMemory } from '../memory-context.tsx';
import { fullDate } from '../time.ts';
import { signed } from '../ui/signed.ts';
import { ChangedFiling, ChangedText } from './changed-text.tsx';
import { secondsLeftOf } from './lifetime.ts';

/** What became of a fact each time, newest first, by whom, and whose words it took the place of. */
export function FactHistory({ fact }: { fact: FactDetail }) {
  const { ask } = useMemory();
  const { data, error } = useAsked('history', { key: fact.key });
  const [failure, setFailure] = useState<string>();
  const restore = ({ value, category, tags }: FactVersion): void => {
    secondsLeftOf(ask, fact)
      .then((left) => ask('remember', { key: fact.key, value, category, tags, ttl_seconds: left }))
      .then(
        () => setFailure(undefined),
        (refused: Error) => setFailure(refused.message),
      );
  };
  const versions = data?.key === fact.key ? data.versions : undefined;
  const said = failure ?? error?.message;
  return (
    <section className="history" aria-label="History">
      <h3>History</h3>
      {said !== undefined && (
        <p className="failure" role="alert">
          {said}
        </p>
      )}
      {versions?.length === 0 && <p className="quiet">It has never said anything else.</p>}
      <ol>
        {versions?.map((version, index) => {
          const newer = versions[index - 1];
          const next = newer ?? fact;
          const changed = newer?.written_at ?? fact.updated_at;
          return (
            <li key={version.written_at}>
              <p className="meta">
                Changed by <bdi>{signed(next)}</bdi>, <time dateTime={changed}>{fullDate(changed)}</time>
              </p>
              <ChangedText before={version.value} after={next.value} />
              <ChangedFiling before={version} after={next} />
              <p className="meta">
                Before: <bdi>{signed(version)}</bdi>, <time dateTime={version.written_at}>{fullDate(version.written_at)}</time>
              </p>
              <button type="button" className="button" onClick={() => restore(version)}>
                Restore what {version.client} wrote
              </button>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
