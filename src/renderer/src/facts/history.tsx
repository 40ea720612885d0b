import type { FactDetail, FactVersion } from '../../../contract/fact.ts';
import { useMemory, useOperation } from '../memory-context.tsx';
import { useTask } from '../task.ts';
import { fullDate } from '../time.ts';
import { Button } from '../ui/button.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { ChangedCategoryAndTags, ChangedText } from './changed-text.tsx';
import { currentSecondsLeft } from './lifetime.ts';

/** Shows the changes of a fact, newest first. Each change has a button that restores the version before the change. */
export function FactHistory({ fact }: { fact: FactDetail }) {
  const { call } = useMemory();
  const { data, error } = useOperation('history', { key: fact.key });
  const { failure, run } = useTask();
  const restore = ({ value, category, tags }: FactVersion): void =>
    void run(async () => {
      const ttl = await currentSecondsLeft(call, fact);
      await call('remember', { key: fact.key, value, category, tags, ttl_seconds: ttl });
    });
  const versions = data?.key === fact.key ? data.versions : undefined;
  return (
    <section className="history" aria-label="History">
      <h3>History</h3>
      <ErrorText text={failure ?? error?.message} />
      {versions?.length === 0 && <p className="quiet">No earlier versions</p>}
      <ol>
        {versions?.map((version, index) => {
          const newer = versions[index - 1];
          const next = newer ?? fact;
          const changed = newer?.written_at ?? fact.updated_at;
          return (
            <li key={`${version.written_at} ${version.former_key ?? ''}`}>
              <p className="meta">
                Changed by <bdi>{authorOf(next)}</bdi>, <time dateTime={changed}>{fullDate(changed)}</time>
              </p>
              <ChangedText before={version.value} after={next.value} />
              <ChangedCategoryAndTags before={version} after={next} />
              <p className="meta">
                Earlier version by <bdi>{authorOf(version)}</bdi>,{' '}
                <time dateTime={version.written_at}>{fullDate(version.written_at)}</time>
                {version.former_key !== undefined && (
                  <>
                    , under the key <bdi>{version.former_key}</bdi>
                  </>
                )}
              </p>
              <Button label={`Restore the version by ${version.client}`} onClick={() => restore(version)} />
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** Names the client that wrote a version. If a pipeline wrote the version, also names the client that defined the pipeline. */
const authorOf = ({ client, defined_by: definer }: Pick<FactVersion, 'client' | 'defined_by'>): string =>
  definer === undefined ? client : `${client} through a pipeline of ${definer}`;
