import type { Config } from '../config/config.ts';
import { createReservedCatalogue } from '../egress/network-packs.ts';
import { findConfinement } from '../own-packs/confinement.ts';
import { OwnPacks } from '../own-packs/own-packs.ts';
import { canBeNode } from '../own-packs/runtime.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

/** Checks the owner's enabled packs by loading them, as the program does at startup. */
export async function packFindings({ folder, packs: enabled, fetchHosts }: Config): Promise<Finding[]> {
  using own = new OwnPacks();
  const { packs, skipped } = await own.load(folder, enabled, createReservedCatalogue(fetchHosts));
  return [
    ...(canBeNode() ? [await confinementFinding(enabled.length > 0)] : []),
    ...packs.map(({ name, version }) => ok('packs', `${name} ${version} can be run.`)),
    ...skipped.map(({ name, why }) =>
      bad('packs', `${name} is skipped: ${why}`, 'Correct the pack, then restart Helmdeck Memory.'),
    ),
  ];
}

/** Reports how the owner's packs are sandboxed. Recommends bubblewrap only on Linux, and only if a pack is enabled. */
async function confinementFinding(inUse: boolean): Promise<Finding> {
  const { name } = await findConfinement();
  if (name !== 'none') return ok('packs', `Your own packs are sandboxed by ${name} and by the permission model of Node.`);
  const says = 'Your own packs are sandboxed only by the permission model of Node.';
  if (!inUse || process.platform !== 'linux') return ok('packs', says);
  return warn(
    'packs',
    says,
    'To sandbox your packs with the operating system too, install bubblewrap (apt install bubblewrap) and allow user namespaces.',
  );
}
