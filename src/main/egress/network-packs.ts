import { GitHubClient } from '../../core/packs/builtin/github-api.ts';
import { githubPacks } from '../../core/packs/builtin/github.ts';
import { httpFetch } from '../../core/packs/builtin/http-fetch.ts';
import { Catalogue } from '../../core/packs/catalogue.ts';
import type { Egress } from '../../core/packs/egress.ts';
import type { Pack } from '../../core/packs/pack.ts';
import { type Clock, systemClock } from '../../core/time/clock.ts';
import type { Network } from './egress.ts';

interface Deps {
  readonly clock: Clock;
  readonly egress: Egress;
  readonly fetchHosts: readonly string[];
}

/** Creates the packs that use the network. A pack sends requests only through `egress`, and only while the pack runs. */
export const createNetworkPacks = ({ clock, egress, fetchHosts }: Deps): readonly Pack[] => [
  httpFetch({ egress, hosts: fetchHosts }),
  ...githubPacks(new GitHubClient({ egress, clock })),
];

/** Creates a catalogue of all names that the owner's packs cannot use. Packs of this catalogue are never run. */
export function createReservedCatalogue(fetchHosts: readonly string[]): Catalogue {
  const catalogue = new Catalogue();
  const egress = createLazyEgress({ clock: systemClock });
  for (const pack of createNetworkPacks({ clock: systemClock, egress, fetchHosts })) catalogue.add(pack);
  return catalogue;
}

/** Creates an egress that loads the network code on first use, so that the code does not delay startup. */
export function createLazyEgress(deps: Network & { readonly clock: Clock }): Egress {
  let egress: Promise<Egress> | undefined;
  const load = async (): Promise<Egress> => (await import('./egress.ts')).createEgress(deps);
  return {
    async get(request) {
      return (await (egress ??= load())).get(request);
    },
  };
}
