import { useState } from 'react';
import type { OperationOutput } from '../../../contract/operations.ts';
import { useDoing } from '../doing.ts';
import { useMemory } from '../memory-context.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { Section } from '../ui/page.tsx';
import { Failed } from '../ui/refused.tsx';
import { useFreshLook, useWatched } from '../watched.ts';

const OPENCLAW = { client: 'openclaw-embeddings' };

/**
 * Has OpenClaw's own search go through these embeddings, where it is on this machine. Offered only while they are there: OpenClaw finds
 * nothing by a provider that does not answer.
 */
export function OpenClaw({ ready }: { ready: boolean }) {
  const { ask } = useMemory();
  const lookAgain = useFreshLook();
  const doing = useDoing();
  const { data } = useWatched('clients', {}, () => undefined);
  const [plan, setPlan] = useState<OperationOutput<'planConnection'>>();
  const [why, setWhy] = useState<string>();
  const row = data?.clients.find(({ id }) => id === OPENCLAW.client);
  const off = row?.state === 'not_connected';
  if (!row?.installed || (off && !ready)) return undefined;
  const show = (): void => void doing.run(async () => setPlan(await ask('planConnection', OPENCLAW)));
  const takeBack = (): void =>
    void doing.run(async () => {
      await ask('disconnectClient', { client: OPENCLAW.client });
      setWhy(undefined);
      lookAgain();
    });
  const connect = async (): Promise<void> => {
    if (!plan) return;
    const { verified } = await ask('connectClient', { ...OPENCLAW, basis: plan.basis });
    setWhy(verified.works ? undefined : `It does not come through yet. ${verified.why ?? ''}`);
    lookAgain();
  };
  return (
    <Section title="OpenClaw">
      <p className={off || ready ? 'quiet' : 'warned'}>
        {off
          ? "OpenClaw's own memory search can go through these embeddings."
          : "OpenClaw's own memory search goes through these embeddings."}
        {!ready && ' It is unavailable until they are ready, or until it is put back.'}
      </p>
      {row.why !== undefined && <p className="warned">{row.why}</p>}
      <p className="buttons">
        {ready && row.state !== 'connected' && (
          <button type="button" className="button" disabled={doing.busy} onClick={show}>
            {off ? 'Use for OpenClaw…' : 'Repair…'}
          </button>
        )}
        {!off && (
          <button type="button" className="button" disabled={doing.busy} onClick={takeBack}>
            Put OpenClaw back as it was
          </button>
        )}
      </p>
      <Failed text={doing.failure ?? why} />
      {plan && (
        <Confirm
          title="Have OpenClaw search by these?"
          act="Change it so"
          harmless
          run={connect}
          close={() => setPlan(undefined)}
        >
          {plan.files.map(({ path, lines }) => (
            <div key={path}>
              <p className="address">
                <bdi>{path}</bdi>
              </p>
              <pre className="output">{lines.map(({ sign, text }) => `${sign} ${text}`).join('\n')}</pre>
            </div>
          ))}
          <p className="quiet">
            Its token is its own, and opens no memory. While it stands there nobody but you may read the file. Put back, it is as
            it was.
          </p>
        </Confirm>
      )}
    </Section>
  );
}
