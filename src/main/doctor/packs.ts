import type { Config } from '../config/config.ts';
import { createReservedCatalogue } from '../egress/network-packs.ts';
import { findConfinement } from '../own-packs/confinement.ts';
import { OwnPacks } from '../own-packs/own-packs.ts';
import { canBeNode } from '../own-packs/runtime.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

/** The listed packs, loaded as at the next start. */
export async function packFindings({ folder, packs: listed, fetchHosts }: Config): Promise<Finding[]> {
  using own = new OwnPacks();
  const { packs, skipped } = await own.load(folder, listed, createReservedCatalogue(fetchHosts));
  return [
    ...(canBeNode() ? [await confinementFinding(listed.length > 0)] : []),
    ...packs.map(({ name, version }) => ok('packs', `${name} ${version} can be run.`)),
    ...skipped.map(({ name, why }) => bad('packs', `${name} is skipped: ${why}`, 'Then look again, and start the program anew.')),
  ];
}

/** What keeps own packs from the rest of the machine. Only an owner who runs any is asked to install something. */
async function confinementFinding(inUse: boolean): Promise<Finding> {
  const { name } = await findConfinement();
  if (name !== 'none') return ok('packs', `Packs of your own are confined by ${name}, and by Node.`);
  const says = 'Packs of your own are confined by Node alone.';
  if (!inUse || process.platform !== 'linux') return ok('packs', says);
  return warn(
    'packs',
    says,
    'Install bubblewrap (apt install bubblewrap), and allow user namespaces, to have the system confine them too.',
  );
}
