import { cruise } from 'dependency-cruiser';
import readRules from 'dependency-cruiser/config-utl/extract-depcruise-options';

/** The folders of `src` and who imports whom, as Mermaid draws it. */
export async function renderDependencies(): Promise<string> {
  const rules = await readRules('./.dependency-cruiser.js');
  const { output } = await cruise(['src'], {
    ...rules,
    includeOnly: '^src/',
    collapse: '^src/[^/]+',
    outputType: 'mermaid',
    reporterOptions: { mermaid: { minify: false } },
  });
  // The Mermaid reporter answers with text. Its arrows come in the order in which modules were met; ours stay where they are.
  const lines = (output as string).trim().split('\n');
  const isArrow = (line: string): boolean => line.includes('-->');
  return [...lines.filter((line) => !isArrow(line)), ...lines.filter(isArrow).toSorted()].join('\n');
}
