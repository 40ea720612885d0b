import type { Config } from '../config.ts';
import { OwnPacks } from '../own-packs/own-packs.ts';
import { catalogueBesideOwnPacks } from '../packs.ts';
import { bad, type Finding, ok } from './finding.ts';

/** The listed packs, loaded as at the next start. */
export async function packFindings({ folder, packs: listed, fetchHosts }: Config): Promise<Finding[]> {
  using own = new OwnPacks();
  const { packs, skipped } = await own.load(folder, listed, catalogueBesideOwnPacks(fetchHosts));
  return [
    ...packs.map(({ name, version }) => ok('packs', `${name} ${version} can be run.`)),
    ...skipped.map(({ name, why }) => bad('packs', `${name} is skipped: ${why}`, 'Then look again, and start the program anew.')),
  ];
}
