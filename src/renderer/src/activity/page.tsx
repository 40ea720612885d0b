import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { Activity } from '../../../contract/history.ts';
import { useMemory } from '../memory-context.tsx';
import { dayOf, fullDate } from '../time.ts';
import { useActions } from '../ui/actions.tsx';
import { Page } from '../ui/page.tsx';
import { Refused } from '../ui/refused.tsx';
import { When } from '../ui/when.tsx';
import { type Suspicion, Undo, WRITES } from './undo.tsx';

type Row = Activity['activity'][number];

const PAGE = 100;

const DID: Readonly<Record<Row['operation'], string>> = {
  remember: 'remembered',
  patch: 'changed',
  forget: 'forgot',
  undoForget: 'restored',
  undo: 'took back what was written to',
  import: 'imported',
  createPipeline: 'created the pipeline',
  replacePipeline: 'replaced the pipeline',
  deletePipeline: 'deleted the pipeline',
  adoptPipeline: 'adopted the pipeline',
  mintToken: 'made the token',
  revokeToken: 'revoked the token',
  pauseToken: 'paused or resumed the token',
  endWindowSession: 'ended the browser session',
  connectClient: 'connected',
  disconnectClient: 'disconnected',
  setCredential: 'set the credential',
  dropCredential: 'removed the credential',
  changeSetting: 'changed the setting',
  setEmbeddings: 'changed the embeddings',
  approveOllama: 'approved Ollama',
  pullModel: 'downloaded the embedding model',
  cancelPull: 'cancelled the download of the embedding model',
  trustClock: 'confirmed the clock',
  lock: 'locked the memory',
  unlock: 'unlocked the memory',
  rotateKey: 'rotated the key',
  makeRecoveryKey: 'made a recovery key',
  backup: 'made a backup',
};

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });

/** Who did what to this memory, and the way to take it back. */
export function ActivityPage() {
  const { ask, subject } = useMemory();
  const { data, error, isPending, isFetching, hasNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: [subject, 'activity'],
    queryFn: ({ pageParam }) => ask('activity', { limit: PAGE, ...(pageParam !== '' && { cursor: pageParam }) }),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor: next }) => next,
  });
  const [wanted, setWanted] = useState(1);
  const pages = data?.pages.length ?? 0;
  // What happens meanwhile has everything read anew, and a page that was under way is asked for again after that.
  useEffect(() => {
    if (pages < wanted && hasNextPage && !isFetching) void fetchNextPage();
  }, [pages, wanted, hasNextPage, isFetching, fetchNextPage]);
  const [undoing, setUndoing] = useState<Suspicion>();
  const rows = data?.pages.flatMap(({ activity }) => activity) ?? [];
  const begin = (): void => setUndoing({ client: undefined, since: rows.at(-1)?.at });
  useActions([{ name: 'Undo what a client wrote…', run: begin }]);
  const days = Map.groupBy(rows, ({ at }) => dayOf(at));
  return (
    <Page title="Activity" says="Who wrote or forgot what in this memory and who administered it, kept for 30 days.">
      <Refused error={error} />
      {rows.length > 0 && (
        <p className="buttons">
          <button type="button" className="button" onClick={begin}>
            Undo what a client wrote…
          </button>
        </p>
      )}
      {[...days].map(([day, its]) => (
        <section key={day} className="section" aria-label={day}>
          <h2>{day}</h2>
          <ol className="plain">
            {its.map((row) => (
              <Line key={row.id} row={row} undo={() => setUndoing({ client: row.client, since: row.at, from: row.id })} />
            ))}
          </ol>
        </section>
      ))}
      {!isPending && !error && rows.length === 0 && (
        <div className="empty">
          <p>Nothing has been written, forgotten or administered here in the last 30 days.</p>
        </div>
      )}
      {hasNextPage && (
        <p className="buttons">
          <button type="button" className="button" disabled={pages < wanted} onClick={() => setWanted(pages + 1)}>
            Show earlier
          </button>
        </p>
      )}
      {undoing && <Undo suspicion={undoing} rows={rows} close={() => setUndoing(undefined)} />}
    </Page>
  );
}

function Line({ row, undo }: { row: Row; undo: () => void }) {
  const { at, operation, client, defined_by: definedBy, key, scope, target, shortened } = row;
  return (
    <li className="line">
      <span>
        <When at={at} short={clock.format(new Date(at))} />{' '}
        <strong>
          <bdi>{client}</bdi>
        </strong>{' '}
        {definedBy !== undefined && (
          <>
            by a pipeline of <bdi>{definedBy}</bdi>{' '}
          </>
        )}
        {DID[operation]} <bdi>{key ?? scope ?? target}</bdi>
        {shortened && ` and made it expire on ${fullDate(shortened.to)} instead of ${fullDate(shortened.from)}`}
      </span>
      {WRITES.has(operation) && (
        <button
          type="button"
          className="opener calm"
          onClick={undo}
          aria-label={`Undo from here: what ${client} wrote at ${clock.format(new Date(at))} and later`}
        >
          Undo from here…
        </button>
      )}
    </li>
  );
}
