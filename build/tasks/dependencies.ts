import { cruise } from 'dependency-cruiser';
import readRules from 'dependency-cruiser/config-utl/extract-depcruise-options';

/** The folders of `src` and their imports as a Mermaid diagram. */
export async function renderDependencies(): Promise<string> {
  const rules = await readRules('./.dependency-cruiser.js');
  const { output } = await cruise(['src'], {
    ...rules,
    includeOnly: '^src/',
    collapse: '^src/[^/]+',
    outputType: 'mermaid',
    reporterOptions: { mermaid: { minify: false } },
  });
  // The reporter prints arrows in the order in which it reads modules. Sort them, so that the diagram is stable.
  const lines = (output as string).trim().split('\n');
  const isArrow = (line: string): boolean => line.includes('-->');
  return [...lines.filter((line) => !isArrow(line)), ...lines.filter(isArrow).toSorted()].join('\n');
}
