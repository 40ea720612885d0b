import { useState } from 'react';
import type { Activity, UndoReceipt } from '../../../contract/history.ts';
import { useAsked, useMemory } from '../memory-context.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { counted } from '../ui/forget-scope.tsx';
import { Refused } from '../ui/refused.tsx';
import { useToast } from '../ui/toast.tsx';

/** Whose writes may be unwanted, and from when on. */
export interface Suspicion {
  readonly client: string | undefined;
  readonly since: string | undefined;
  /** The activity row to begin with, if it was chosen. */
  readonly from?: string;
}

interface Props {
  readonly suspicion: Suspicion;
  /** What is known of who wrote what. */
  readonly rows: Activity['activity'];
  readonly close: () => void;
}

const SHOWN = 8;
export const WRITES: ReadonlySet<string> = new Set([
  'remember',
  'patch',
  'import',
  'createPipeline',
  'replacePipeline',
  'adoptPipeline',
]);

/** Shows what would go and what would return before anything does. */
export function Undo({ suspicion, rows, close }: Props) {
  const { ask } = useMemory();
  const { say } = useToast();
  const writers = [...new Set(rows.filter(({ operation }) => WRITES.has(operation)).flatMap(answering))];
  const [client, setClient] = useState(suspicion.client ?? writers[0] ?? '');
  const [moment, setMoment] = useState(() => localMoment(suspicion.since));
  const since = instantOf(moment);
  const isAsChosen = client === suspicion.client && since === suspicion.since && suspicion.from !== undefined;
  const input = { client, since: since ?? '', ...(isAsChosen && { from: suspicion.from }) };
  const asked = useAsked('undo', { ...input, dry_run: true }, since !== undefined && client !== '');
  const would = asked.isPlaceholderData || since === undefined ? undefined : asked.data;
  const shown = isAsChosen ? rows.slice(0, rows.findIndex(({ id }) => id === suspicion.from) + 1) : rows;
  const touched = since === undefined ? [] : keysOf(shown, client, since);
  const undo = async (): Promise<void> => {
    const done = await ask('undo', input);
    say({ text: `Taken back: ${counted(done.removed, 'fact')} forgotten, ${done.restored.toLocaleString()} as before.` });
  };
  return (
    <Confirm
      title="Undo what a client wrote"
      act="Undo"
      run={undo}
      close={close}
      ready={would !== undefined && would.removed + would.restored + pipelinesOf(would) > 0}
    >
      <div className="fields">
        <label>
          Client
          <select value={client} onChange={({ target }) => setClient(target.value)}>
            {writers.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          From
          <input type="datetime-local" step={0.001} value={moment} onChange={({ target }) => setMoment(target.value)} />
        </label>
      </div>
      <div role="status">{would && <Preview would={would} touched={touched} />}</div>
      <Refused error={asked.error} />
    </Confirm>
  );
}

/** How many it would delete or change back. */
const pipelinesOf = ({ pipelines }: UndoReceipt): number =>
  pipelines === undefined ? 0 : pipelines.removed.length + pipelines.restored.length;

function Preview({ would, touched }: { would: UndoReceipt; touched: readonly string[] }) {
  const { client, removed, restored, skipped, pipelines } = would;
  if (removed + restored + skipped.length === 0 && pipelines === undefined) {
    return (
      <p>
        Nothing of what <bdi>{client}</bdi> wrote since then is the last word on any fact.
      </p>
    );
  }
  return (
    <>
      <ul className="going">
        {removed > 0 && <li>Forgotten: {counted(removed, 'fact')} that it made</li>}
        {restored > 0 && <li>As before again: {counted(restored, 'fact')} that it changed</li>}
        {pipelines !== undefined && pipelines.removed.length > 0 && (
          <li>
            Pipelines deleted: <Keys keys={pipelines.removed} />
          </li>
        )}
        {pipelines !== undefined && pipelines.restored.length > 0 && (
          <li>
            Pipelines as before: <Keys keys={pipelines.restored} />
          </li>
        )}
        {pipelines !== undefined && pipelines.skipped.length > 0 && (
          <li>
            Pipelines left as they are: <Keys keys={pipelines.skipped} />
          </li>
        )}
        {skipped.length > 0 && (
          <li>
            Left as it is, because who wrote it first, or what it said before, is gone: <Keys keys={skipped} />
          </li>
        )}
      </ul>
      {touched.length > 0 && (
        <p className="quiet">
          It wrote to <Keys keys={touched} />
        </p>
      )}
    </>
  );
}

function Keys({ keys }: { keys: readonly string[] }) {
  return (
    <>
      {keys.slice(0, SHOWN).map((key, index) => (
        <span key={key}>
          {index > 0 && ', '}
          <bdi>{key}</bdi>
        </span>
      ))}
      {keys.length > SHOWN && ` and ${(keys.length - SHOWN).toLocaleString()} more`}
    </>
  );
}

/** The program that wrote, and the one whose pipeline made it write. */
const answering = ({ client, defined_by: definedBy }: Activity['activity'][number]): string[] =>
  definedBy === undefined ? [client] : [client, definedBy];

const keysOf = (rows: Activity['activity'], client: string, since: string): string[] => [
  ...new Set(
    rows
      .filter((row) => answering(row).includes(client) && WRITES.has(row.operation) && row.at >= since)
      .flatMap(({ key }) => (key === undefined ? [] : [key])),
  ),
];

/** The format of the field: local time to the millisecond, as the record has it. */
function localMoment(at: string | undefined): string {
  const moment = new Date(at ?? Date.now());
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 23);
}

function instantOf(moment: string): string | undefined {
  const at = new Date(moment);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
