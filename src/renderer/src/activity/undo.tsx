import { useState } from 'react';
import type { Activity, UndoReceipt } from '../../../contract/history.ts';
import { useMemory, useOperation } from '../memory-context.tsx';
import { counted } from '../time.ts';
import { Confirm } from '../ui/confirm.tsx';
import { LoadError } from '../ui/errors.tsx';
import { useToast } from '../ui/toast.tsx';

/** The initial selection of the undo dialog. */
export interface UndoStart {
  readonly client: string | undefined;
  readonly since: string | undefined;
  /** The id of the chosen activity row. Earlier writes in the same millisecond are not undone. */
  readonly from?: string;
}

interface Props {
  readonly start: UndoStart;
  /** The loaded activity, newest first. */
  readonly rows: Activity['activity'];
  readonly close: () => void;
}

const MAX_NAMES = 8;
export const WRITES: ReadonlySet<string> = new Set([
  'remember',
  'patch',
  'import',
  'createPipeline',
  'replacePipeline',
  'adoptPipeline',
]);

/** A dialog that previews and then undoes the writes of a client (R-WIN-20). */
export function UndoDialog({ start, rows, close }: Props) {
  const { call } = useMemory();
  const { showToast } = useToast();
  const clients = [...new Set(rows.filter(({ operation }) => WRITES.has(operation)).flatMap(clientsOf))];
  const [client, setClient] = useState(start.client ?? clients[0] ?? '');
  const [time, setTime] = useState(() => toFieldValue(start.since));
  const since = fromFieldValue(time);
  const isUnchanged = client === start.client && since === start.since && start.from !== undefined;
  const input = { client, since: since ?? '', ...(isUnchanged && { from: start.from }) };
  const result = useOperation('undo', { ...input, dry_run: true }, since !== undefined && client !== '');
  const preview = result.isPlaceholderData || since === undefined ? undefined : result.data;
  const covered = isUnchanged ? rows.slice(0, rows.findIndex(({ id }) => id === start.from) + 1) : rows;
  const keys = since === undefined ? [] : writtenKeys(covered, client, since);
  const undo = async (): Promise<void> => {
    const { removed, restored } = await call('undo', input);
    showToast({ text: `Undone: ${counted(removed, 'fact')} forgotten, ${restored.toLocaleString()} restored.` });
  };
  return (
    <Confirm
      title="Undo a client's changes"
      button="Undo"
      run={undo}
      close={close}
      ready={preview !== undefined && preview.removed + preview.restored + changedPipelines(preview) > 0}
    >
      <div className="fields">
        <label>
          Client
          <select value={client} onChange={({ target }) => setClient(target.value)}>
            {clients.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          From
          <input type="datetime-local" step={0.001} value={time} onChange={({ target }) => setTime(target.value)} />
        </label>
      </div>
      <div role="status">{preview && <Preview preview={preview} keys={keys} />}</div>
      <LoadError error={result.error} />
    </Confirm>
  );
}

const changedPipelines = ({ pipelines }: UndoReceipt): number =>
  pipelines === undefined ? 0 : pipelines.removed.length + pipelines.restored.length;

/** Lists what an undo removes and restores. */
export function Preview({ preview, keys }: { preview: UndoReceipt; keys: readonly string[] }) {
  const { client, removed, restored, skipped, pipelines } = preview;
  if (removed + restored + skipped.length === 0 && pipelines === undefined) {
    return (
      <p>
        <bdi>{client}</bdi> has no changes to undo since this time.
      </p>
    );
  }
  return (
    <>
      <ul className="preview">
        {removed > 0 && <li>{counted(removed, 'new fact')} will be forgotten</li>}
        {restored > 0 && <li>{counted(restored, 'changed fact')} will be restored</li>}
        <NamesItem label="Pipelines to delete" names={pipelines?.removed} />
        <NamesItem label="Pipelines to restore" names={pipelines?.restored} />
        <NamesItem label="Pipelines that stay unchanged" names={pipelines?.skipped} />
        <NamesItem label="Facts that stay unchanged, because the earlier version or its author is unknown" names={skipped} />
      </ul>
      {keys.length > 0 && (
        <p className="quiet">
          Facts written: <Names names={keys} />
        </p>
      )}
    </>
  );
}

function NamesItem({ label, names = [] }: { label: string; names?: readonly string[] | undefined }) {
  if (names.length === 0) return undefined;
  return (
    <li>
      {label}: <Names names={names} />
    </li>
  );
}

function Names({ names }: { names: readonly string[] }) {
  return (
    <>
      {names.slice(0, MAX_NAMES).map((name, index) => (
        <span key={name}>
          {index > 0 && ', '}
          <bdi>{name}</bdi>
        </span>
      ))}
      {names.length > MAX_NAMES && ` and ${(names.length - MAX_NAMES).toLocaleString()} more`}
    </>
  );
}

/** Returns the client of an activity row and, if a pipeline ran, also the client that defined the pipeline. */
const clientsOf = ({ client, defined_by: definedBy }: Activity['activity'][number]): string[] =>
  definedBy === undefined ? [client] : [client, definedBy];

const writtenKeys = (rows: Activity['activity'], client: string, since: string): string[] => [
  ...new Set(
    rows
      .filter((row) => clientsOf(row).includes(client) && WRITES.has(row.operation) && row.at >= since)
      .flatMap(({ key }) => (key === undefined ? [] : [key])),
  ),
];

/** Formats a time as the value of a `datetime-local` input: local time with milliseconds. */
function toFieldValue(at: string | undefined): string {
  const time = new Date(at ?? Date.now());
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 23);
}

function fromFieldValue(value: string): string | undefined {
  const time = new Date(value);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
