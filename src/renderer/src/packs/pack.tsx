import { useRef, useState } from 'react';
import type { PackResult } from '../../../contract/pack.ts';
import { useMemory, useOperation } from '../memory-context.tsx';
import { useTask } from '../task.ts';
import { duration, fullDate } from '../time.ts';
import { Button } from '../ui/button.tsx';
import { ErrorText, LoadError } from '../ui/errors.tsx';
import { useForgetScope } from '../ui/forget-scope.tsx';
import { Page, Section } from '../ui/page.tsx';
import { InputForm } from './form.tsx';
import { Output } from './output.tsx';

export function PackPage({ name, back }: { name: string; back: () => void }) {
  const { call } = useMemory();
  const { data: pack, error } = useOperation('pack', { name });
  const { busy, failure, run } = useTask();
  const [result, setResult] = useState<PackResult>();
  const [forgetScope, dialog] = useForgetScope();
  const controller = useRef(new AbortController());
  const start = (input: Record<string, unknown>): void => {
    setResult(undefined);
    const { signal } = (controller.current = new AbortController());
    void run(async () => setResult(await call('runPack', { name, input }, signal)));
  };
  const clear = (): void =>
    forgetScope({
      title: `Clear the cache and run records of ${name}?`,
      scope: `pack:${name}`,
      noun: 'entry',
      text: "The pack's cached results and run records will be deleted. The pack's own memory stays.",
    });
  return (
    <Page title={pack?.title ?? name} description={pack?.description} back={{ to: 'All packs', go: back }}>
      <LoadError error={error} />
      {pack && (
        <>
          <p className="quiet">
            <code>{pack.name}</code> {pack.version}. Agents call it as the tool <code>{pack.tool}</code>.
            {pack.own && ' You installed this pack yourself.'}
            {pack.cache_seconds !== undefined && ` Results are cached for ${duration(pack.cache_seconds)}.`}
          </p>
          {pack.unavailable !== undefined && <p className="warned">{pack.unavailable}</p>}
          <Section title="Run">
            <InputForm schema={pack.input_schema} busy={busy} run={start} />
            <div role="status">
              {busy && <p>Running…</p>}
              {result && <Result result={result} />}
            </div>
            {busy && (
              <p className="buttons">
                <Button label="Cancel the run" onClick={() => controller.current.abort()} />
              </p>
            )}
            <ErrorText text={failure} />
          </Section>
          <Section title="Cache and run records">
            <p className="quiet">The cached results and the run records of this pack. Habits are learned from the run records.</p>
            <p className="buttons">
              <Button label="Clear cache and records…" look="danger" onClick={clear} />
            </p>
          </Section>
        </>
      )}
      {dialog}
    </Page>
  );
}

function Result({ result: { output, cached, cached_until: until, duration_ms: ms } }: { result: PackResult }) {
  return (
    <>
      <p>
        {cached ? 'Cached result of an earlier run.' : `Finished in ${ms.toLocaleString()} ms.`}
        {until !== undefined && ` Cached until ${fullDate(until)}.`}
      </p>
      <Output value={output} />
    </>
  );
}
