import { cruise } from 'dependency-cruiser';
import readRules from 'dependency-cruiser/config-utl/extract-depcruise-options';

/** The folders of `src` and who imports whom, as Mermaid draws it. */
export async function picture(): Promise<string> {
  const rules = await readRules('./.dependency-cruiser.js');
  const { output } = await cruise(['src'], {
    ...rules,
    includeOnly: '^src/',
    collapse: '^src/[^/]+',
    outputType: 'mermaid',
    reporterOptions: { mermaid: { minify: false } },
  });
  // The Mermaid reporter answers with text.
  return (output as string).trim();
}
