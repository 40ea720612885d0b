import { useState } from 'react';
import type { OperationOutput } from '../../../contract/operations.ts';
import { useMemory } from '../memory-context.tsx';
import { useTask } from '../task.ts';
import { Button } from '../ui/button.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { TextField } from '../ui/field.tsx';
import { Section } from '../ui/page.tsx';

export function SimilarityTest() {
  const { call } = useMemory();
  const { busy, failure, submit } = useTask({ one: 'First sentence', other: 'Second sentence' });
  const [one, setOne] = useState('');
  const [other, setOther] = useState('');
  const [result, setResult] = useState<OperationOutput<'testEmbeddings'>>();
  const onSubmit = submit(async () => setResult(await call('testEmbeddings', { one, other })));
  return (
    <Section title="Compare two sentences">
      <form className="fields" onSubmit={onSubmit}>
        <TextField label="First sentence" required value={one} change={setOne} />
        <TextField label="Second sentence" required value={other} change={setOther} />
        <p className="buttons">
          <Button label="Compare" type="submit" disabled={busy} />
        </p>
        <div role="status" aria-label="Similarity">
          {result && (
            <>
              <p>
                {describe(result.nearness)}: <span className="number">{result.nearness.toFixed(3)}</span>
              </p>
              <p className="quiet">
                Identical sentences score 1. Each vector has {result.dimensions.toLocaleString()} numbers. The comparison took{' '}
                {result.duration_ms.toLocaleString()} ms.
              </p>
            </>
          )}
        </div>
        <ErrorText text={failure} />
      </form>
    </Section>
  );
}

/** Describes a similarity in words. The thresholds suit common embedding models. */
function describe(similarity: number): string {
  if (similarity > 0.7) return 'Very similar';
  if (similarity > 0.4) return 'Similar';
  return similarity > 0.2 ? 'Somewhat similar' : 'Not similar';
}
