import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const [, written = ''] =
  /<!-- walk: written by npm run walk -->\n(.*)<!-- end of walk -->/s.exec(readFileSync('docs/architecture.md', 'utf8')) ?? [];
const walks = [...written.matchAll(/^### (.+): (\d+) files, (\d+) returns\n\n((?:\d+\. `.+`\n)+)/gm)];

describe('the walks in docs/architecture.md', () => {
  test('are three', () => {
    expect(walks.map(([, name]) => name)).toEqual(['`memory_store` over MCP', 'a search over REST', 'a lifetime edit over IPC']);
  });

  test.each(walks.map(([, name = '', count = '', , list = '']) => ({ name, count, list })))(
    'name files that exist, as many as they say: $name',
    ({ count, list }) => {
      const files = [...list.matchAll(/`(.+)`/g)].map(([, file = '']) => file);
      expect(files).toHaveLength(Number(count));
      expect(files.filter((file) => !existsSync(join('src', file)))).toEqual([]);
    },
  );
});
