import { useState } from 'react';
import type { Output } from '../../../contract/operations.ts';
import { useDoing } from '../doing.ts';
import { useAsked, useMemory } from '../memory-context.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { Section } from '../ui/page.tsx';
import { Failed } from '../ui/refused.tsx';
import { useFreshLook } from '../watched.ts';

const OPENCLAW = { client: 'openclaw-embeddings' };

/** Has OpenClaw's own search go through these embeddings, where it is on this machine. */
export function OpenClaw() {
  const { ask } = useMemory();
  const lookAgain = useFreshLook();
  const doing = useDoing();
  const { data } = useAsked('clients', {});
  const [plan, setPlan] = useState<Output<'planConnection'>>();
  const row = data?.clients.find(({ id }) => id === OPENCLAW.client);
  if (!row?.installed) return undefined;
  const off = row.state === 'not_connected';
  const show = (): void => void doing.run(async () => setPlan(await ask('planConnection', OPENCLAW)));
  const takeBack = (): void =>
    void doing.run(async () => {
      await ask('disconnectClient', { client: OPENCLAW.client });
      lookAgain();
    });
  const connect = async (): Promise<void> => {
    if (plan) await ask('connectClient', { ...OPENCLAW, basis: plan.basis });
    lookAgain();
  };
  return (
    <Section title="OpenClaw">
      <p className="quiet">
        {off
          ? "OpenClaw's own memory search can go through these embeddings."
          : "OpenClaw's own memory search goes through these embeddings."}
      </p>
      <p className="buttons">
        <button type="button" className="button" disabled={doing.busy} onClick={off ? show : takeBack}>
          {off ? 'Use for OpenClaw…' : 'Put OpenClaw back as it was'}
        </button>
      </p>
      <Failed text={doing.failure} />
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
          <p className="quiet">Its token is its own, and opens no memory. Put back, the file is as it was.</p>
        </Confirm>
      )}
    </Section>
  );
}
