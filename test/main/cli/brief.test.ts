import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repositoryRoot } from '../../../src/main/cli/repository-root.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { runCli } from './run-cli.ts';

/** A repository `shop` with a linked worktree `shop-fix`, a submodule `lib` and a folder beside them. */
function repository(): string {
  const home = tempFolder();
  mkdirSync(join(home, 'shop/.git/worktrees/shop-fix'), { recursive: true });
  mkdirSync(join(home, 'shop/src/deep'), { recursive: true });
  mkdirSync(join(home, 'shop/lib'));
  mkdirSync(join(home, 'shop-fix/src'), { recursive: true });
  mkdirSync(join(home, 'notes'));
  writeFileSync(join(home, 'shop-fix/.git'), `gitdir: ${home}/shop/.git/worktrees/shop-fix\n`);
  writeFileSync(join(home, 'shop/lib/.git'), 'gitdir: ../.git/modules/lib\n');
  return home;
}

test.each([
  { folder: 'shop', root: 'shop' },
  { folder: 'shop/src/deep', root: 'shop' },
  { folder: 'shop-fix', root: 'shop' },
  { folder: 'shop-fix/src', root: 'shop' },
  { folder: 'shop/lib', root: 'shop/lib' },
  { folder: 'notes', root: 'notes' },
  { folder: 'missing', root: 'missing' },
])('$folder belongs to $root (R-BRIEF-06)', ({ folder, root }) => {
  const home = repository();
  expect(repositoryRoot(join(home, folder))).toBe(join(home, root));
});

test('prints the brief of a project, or nothing (R-BRIEF-06)', async () => {
  const home = repository();
  const folder = tempFolder();
  const inShop = ['brief', '--folder', join(home, 'shop-fix/src')];
  expect(await runCli(inShop, { folder })).toEqual({ code: 0, out: '', err: 'There is nothing to say.\n' });
  await runCli(['remember', 'build', 'Run make.', '--tag', 'project:shop'], { folder });
  const { out } = await runCli(inShop, { folder });
  expect(out).toMatch(
    /^From Helmdeck Memory: .*\n- build \(command-line, just now\): "Run make\."\nTag facts .* project:shop\.\n$/,
  );
  expect(JSON.parse((await runCli([...inShop, '--json'], { folder })).out)).toEqual({ text: out.trimEnd(), keys: ['build'] });
  await runCli(['remember', 'deploy/host', 'Deploy the website to the server Zephyr.'], { folder });
  const prompt = 'Deploy the website to the server, please';
  expect((await runCli(['brief', '--prompt', prompt, '--folder', home], { folder })).out).toContain('- deploy/host (');
});

test('recall and activity show what agents were shown (R-BRIEF-08)', async () => {
  const folder = tempFolder();
  await runCli(['remember', 'preferences/editor', 'Helix', '--category', 'preferences'], { folder });
  await runCli(['brief'], { folder });
  await runCli(['brief'], { folder });
  expect((await runCli(['recall', 'preferences/editor'], { folder, terminal: true })).out).toMatch(
    /shown +2 times, last to command-line \d{4}-\d\d-\d\d/,
  );
  expect((await runCli(['recall', 'preferences/editor'], { folder })).out).toBe('Helix\n');
  expect((await runCli(['activity'], { folder })).out).toMatch(/command-line +brief +preferences\/editor\n/);
});
