import { useRef, useState } from 'react';
import type { PackResult } from '../../../contract/pack.ts';
import { useDoing } from '../doing.ts';
import { useAsked, useMemory } from '../memory-context.tsx';
import { fullDate, lasting } from '../time.ts';
import { useForgetScope } from '../ui/forget-scope.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Failed, Refused } from '../ui/refused.tsx';
import { InputForm } from './form.tsx';
import { Output } from './output.tsx';

/** One pack: what it is for, a run of it, and what it leaves behind. */
export function PackPage({ name, back }: { name: string; back: () => void }) {
  const { ask } = useMemory();
  const { data: pack, error } = useAsked('pack', { name });
  const { busy, failure, run } = useDoing();
  const [result, setResult] = useState<PackResult>();
  const [forgetScope, dialog] = useForgetScope();
  const stop = useRef(new AbortController());
  const start = (input: Record<string, unknown>): void => {
    setResult(undefined);
    const { signal } = (stop.current = new AbortController());
    void run(async () => setResult(await ask('runPack', { name, input }, signal)));
  };
  const clear = (): void =>
    forgetScope({
      title: `Clear what ${name} left behind?`,
      scope: `pack:${name}`,
      one: 'entry',
      says: 'Its kept answers go, and the record of its runs. What the pack itself remembers stays.',
    });
  return (
    <Page title={pack?.title ?? name} says={pack?.description} back={{ to: 'All packs', go: back }}>
      <Refused error={error} />
      {pack && (
        <>
          <p className="quiet">
            <code>{pack.name}</code> {pack.version}, to agents the tool <code>{pack.tool}</code>
            {pack.own && '; a pack of your own'}
            {pack.cache_seconds !== undefined && `; answers are kept for ${lasting(pack.cache_seconds)}`}
          </p>
          {pack.unavailable !== undefined && <p className="warned">{pack.unavailable}</p>}
          <Section title="Run">
            <InputForm schema={pack.input_schema} act="Run" busy={busy} run={start} />
            <div role="status">
              {busy && <p>Running…</p>}
              {result && <Answered result={result} />}
            </div>
            {busy && (
              <p className="buttons">
                <button type="button" className="button" onClick={() => stop.current.abort()}>
                  Cancel the run
                </button>
              </p>
            )}
            <Failed text={failure} />
          </Section>
          <Section title="What it left behind">
            <p className="quiet">Answers that are kept, and the record of its runs, from which habits are learned.</p>
            <p className="buttons">
              <button type="button" className="button danger" onClick={clear}>
                Clear cache and record…
              </button>
            </p>
          </Section>
        </>
      )}
      {dialog}
    </Page>
  );
}

function Answered({ result: { output, cached, cached_until: until, duration_ms: ms } }: { result: PackResult }) {
  return (
    <>
      <p>
        {cached ? 'Kept from an earlier run.' : `Ran just now, in ${ms.toLocaleString()} ms.`}
        {until !== undefined && ` The same question is answered so until ${fullDate(until)}.`}
      </p>
      <Output value={output} />
    </>
  );
}
