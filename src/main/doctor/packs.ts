import type { Config } from '../config/config.ts';
import { createReservedCatalogue } from '../egress/network-packs.ts';
import { findConfinement } from '../own-packs/confinement.ts';
import { OwnPacks } from '../own-packs/own-packs.ts';
import { canBeNode } from '../own-packs/runtime.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

/** Loads the enabled packs of the owner, as the next start will. */
export async function packFindings({ folder, packs: enabled, fetchHosts }: Config): Promise<Finding[]> {
  using own = new OwnPacks();
  const { packs, skipped } = await own.load(folder, enabled, createReservedCatalogue(fetchHosts));
  return [
    ...(canBeNode() ? [await confinementFinding(enabled.length > 0)] : []),
    ...packs.map(({ name, version }) => ok('packs', `${name} ${version} can be run.`)),
    ...skipped.map(({ name, why }) => bad('packs', `${name} is skipped: ${why}`, 'Correct it, then restart the program.')),
  ];
}

/** Recommends bubblewrap only if the owner uses own packs. */
async function confinementFinding(inUse: boolean): Promise<Finding> {
  const { name } = await findConfinement();
  if (name !== 'none') return ok('packs', `Your own packs are confined by ${name} and by Node.`);
  const says = 'Your own packs are confined by Node only.';
  if (!inUse || process.platform !== 'linux') return ok('packs', says);
  return warn(
    'packs',
    says,
    'To confine them by the system too, install bubblewrap (apt install bubblewrap) and allow user namespaces.',
  );
}
