import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** A Node that can start the launcher and nothing more, if this machine has one. */
export const olderNode = [process.env['HELMDECK_OLD_NODE'], '/usr/local/bin/node', '/usr/bin/node'].find((node) => {
  if (node === undefined || !existsSync(node)) return false;
  const major = Number(/^v(\d+)/.exec(spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout)?.[1]);
  return major >= 18 && major < 24;
});
if (olderNode === undefined) console.log('No Node from 18 to 23 is here, so what an older one does is not tested.');

export const nodes = [
  { name: 'this Node', node: process.execPath },
  ...(olderNode === undefined ? [] : [{ name: 'an older Node', node: olderNode }]),
];
