import { Fragment, useState } from 'react';
import type { Activity } from '../../../contract/history.ts';
import { usePagedOperation } from '../paging.ts';
import type { Place } from '../place.ts';
import { counted, dayOf, fullDate } from '../time.ts';
import { useActions } from '../ui/actions.tsx';
import { Button } from '../ui/button.tsx';
import { LoadError } from '../ui/errors.tsx';
import { Page } from '../ui/page.tsx';
import { When } from '../ui/when.tsx';
import { UndoDialog, type UndoStart, WRITES } from './undo.tsx';

type Row = Activity['activity'][number];

const PAGE = 100;

const VERBS: Readonly<Record<Exclude<Row['operation'], 'brief'>, string>> = {
  remember: 'stored',
  patch: 'changed',
  forget: 'forgot',
  undoForget: 'restored',
  undo: 'undid a change of',
  import: 'imported',
  createPipeline: 'created the pipeline',
  replacePipeline: 'replaced the pipeline',
  deletePipeline: 'deleted the pipeline',
  adoptPipeline: 'adopted the pipeline',
  acceptInbox: 'accepted a write from the Inbox',
  dropInbox: 'dropped writes from the Inbox',
  mintToken: 'created the token',
  revokeToken: 'revoked the token',
  pauseToken: 'paused or resumed the token',
  endWindowSession: 'ended the browser session',
  connectClient: 'connected',
  disconnectClient: 'disconnected',
  offerPacks: 'changed the packs of',
  setCapture: 'changed the proposals of',
  setCredential: 'set the credential',
  dropCredential: 'removed the credential',
  changeSetting: 'changed the setting',
  setEmbeddings: 'changed the embeddings settings',
  approveOllama: 'approved Ollama',
  pullModel: 'downloaded the embedding model',
  cancelPull: 'cancelled the download of the embedding model',
  setMeaning: 'changed search by meaning to',
  rebuildMeaning: 'rebuilt the vectors of search by meaning',
  trustClock: 'confirmed the date',
  lock: 'locked the memory',
  unlock: 'unlocked the memory',
  rotateKey: 'rotated the key',
  makeRecoveryKey: 'created a recovery key',
  backup: 'made a backup',
};

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });

export function ActivityPage({ go }: { go: (place: Place) => void }) {
  const { rows, error, isEmpty, showEarlier, isLoading } = useActivity();
  const [undo, setUndo] = useState<UndoStart>();
  const startUndo = (): void => setUndo({ client: undefined, since: rows.at(-1)?.at });
  useActions([{ name: "Undo a client's changes…", run: startUndo }]);
  const days = Map.groupBy(rows, ({ at }) => dayOf(at));
  return (
    <Page
      title="Activity"
      description="Writes, deletions, administrative actions and briefs in this memory in the last 30 days, each with its client."
    >
      <LoadError error={error} />
      {rows.length > 0 && (
        <p className="buttons">
          <Button label="Undo a client's changes…" onClick={startUndo} />
        </p>
      )}
      {[...days].map(([day, rowsOfDay]) => (
        <section key={day} className="section" aria-label={day}>
          <h2>{day}</h2>
          <ol className="plain">
            {rowsOfDay.map((row) => (
              <Line key={row.id} row={row} go={go} undo={() => setUndo({ client: row.client, since: row.at, from: row.id })} />
            ))}
          </ol>
        </section>
      ))}
      {isEmpty && (
        <div className="empty">
          <p>No activity in the last 30 days.</p>
        </div>
      )}
      {showEarlier && (
        <p className="buttons">
          <Button label="Show earlier" disabled={isLoading} onClick={showEarlier} />
        </p>
      )}
      {undo && <UndoDialog start={undo} rows={rows} close={() => setUndo(undefined)} />}
    </Page>
  );
}

function useActivity() {
  const { pages, error, isPending, isLoading, showMore } = usePagedOperation('activity', PAGE);
  const rows = pages.flatMap(({ activity }) => activity);
  return { rows, error, isEmpty: !isPending && !error && rows.length === 0, isLoading, showEarlier: showMore };
}

interface LineProps {
  readonly row: Row;
  readonly go: (place: Place) => void;
  readonly undo: () => void;
}

function Line({ row, go, undo }: LineProps) {
  const { at, operation, client, defined_by: definedBy, key, supersedes, scope, target, shortened } = row;
  return (
    <li className="line">
      <span>
        <When at={at} short={clock.format(new Date(at))} />{' '}
        <strong>
          <bdi>{client}</bdi>
        </strong>{' '}
        {definedBy !== undefined && (
          <>
            through a pipeline of <bdi>{definedBy}</bdi>{' '}
          </>
        )}
        {operation === 'brief' ? (
          <Brief row={row} go={go} />
        ) : (
          <>
            {VERBS[operation]} <bdi>{key ?? scope ?? target}</bdi>
          </>
        )}
        {supersedes !== undefined && (
          <>
            {' '}
            in place of <bdi>{supersedes}</bdi>
          </>
        )}
        {shortened && ` and made it expire on ${fullDate(shortened.to)} instead of ${fullDate(shortened.from)}`}
      </span>
      {WRITES.has(operation) && (
        <Button
          label="Undo from here…"
          look="link"
          className="subtle"
          onClick={undo}
          aria-label={`Undo from here… Changes by ${client} since ${clock.format(new Date(at))}`}
        />
      )}
    </li>
  );
}

const MOMENTS: Readonly<Record<NonNullable<Row['moment']>, string>> = {
  start: ' at the start of a session',
  prompt: ' for a prompt',
  repeat: ' again, because its context was compacted',
  turn: ' for a turn',
};

/** Names the facts that a brief put before the agent. Each name opens the fact. */
function Brief({ row: { keys = [], moment }, go }: Pick<LineProps, 'row' | 'go'>) {
  return (
    <>
      was shown {counted(keys.length, 'fact')}
      {moment && MOMENTS[moment]}:
      {keys.map((key, index) => (
        <Fragment key={key}>
          {' '}
          <span className="with-comma">
            <Button label={<bdi>{key}</bdi>} look="link" onClick={() => go({ at: 'facts', filter: {}, opened: key })} />
            {index + 1 < keys.length && ','}
          </span>
        </Fragment>
      ))}
    </>
  );
}
