import { useState } from 'react';
import type { OperationOutput } from '../../../contract/operations.ts';
import { FileDiff } from '../connect/connect-dialog.tsx';
import { useMemory } from '../memory-context.tsx';
import { usePolledOperation, useRefresh } from '../polling.ts';
import { useTask } from '../task.ts';
import { Button } from '../ui/button.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { Section } from '../ui/page.tsx';

const OPENCLAW = { client: 'openclaw-embeddings' };

/**
 * Configures OpenClaw's memory search to use these embeddings. Offered only while the embeddings are ready, because OpenClaw's
 * search finds nothing without embeddings.
 */
export function OpenClaw({ ready }: { ready: boolean }) {
  const { call } = useMemory();
  const refresh = useRefresh();
  const { busy, failure, run } = useTask();
  const { data } = usePolledOperation('clients', {});
  const [plan, setPlan] = useState<OperationOutput<'planConnection'>>();
  const [problem, setProblem] = useState<string>();
  const row = data?.clients.find(({ id }) => id === OPENCLAW.client);
  const off = row?.state === 'not_connected';
  if (!row?.installed || (off && !ready)) return undefined;
  const showPlan = (): void => void run(async () => setPlan(await call('planConnection', OPENCLAW)));
  const disconnect = (): void =>
    void run(async () => {
      await call('disconnectClient', { client: OPENCLAW.client });
      setProblem(undefined);
      refresh();
    });
  const connect = async (): Promise<void> => {
    if (!plan) return;
    const { verified } = await call('connectClient', { ...OPENCLAW, basis: plan.basis });
    setProblem(verified.works ? undefined : `The connection does not work yet. ${verified.why ?? ''}`);
    refresh();
  };
  return (
    <Section title="OpenClaw">
      <p className={off || ready ? 'quiet' : 'warned'}>
        {off ? "OpenClaw's own memory search can use these embeddings." : "OpenClaw's own memory search uses these embeddings."}
        {!ready && " OpenClaw's search does not work until the embeddings are ready or you restore OpenClaw's settings."}
      </p>
      {row.why !== undefined && <p className="warned">{row.why}</p>}
      <p className="buttons">
        {ready && row.state !== 'connected' && (
          <Button label={off ? 'Use for OpenClaw…' : 'Repair…'} disabled={busy} onClick={showPlan} />
        )}
        {!off && <Button label="Restore OpenClaw's settings" disabled={busy} onClick={disconnect} />}
      </p>
      <ErrorText text={failure ?? problem} />
      {plan && (
        <Confirm
          title="Use these embeddings for OpenClaw?"
          button="Change settings"
          harmless
          run={connect}
          close={() => setPlan(undefined)}
        >
          {plan.files.map(({ path, lines }) => (
            <div key={path}>
              <p className="address">
                <bdi>{path}</bdi>
              </p>
              <FileDiff lines={lines} />
            </div>
          ))}
          <p className="quiet">
            The token cannot open any memory. While the file contains the token, only you can read the file. You can restore the
            previous settings at any time.
          </p>
        </Confirm>
      )}
    </Section>
  );
}
