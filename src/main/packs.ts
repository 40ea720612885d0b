import type { Clock } from '../core/clock.ts';
import { GitHub } from '../core/packs/builtin/github-api.ts';
import { githubPacks } from '../core/packs/builtin/github.ts';
import { httpFetch } from '../core/packs/builtin/http-fetch.ts';
import type { Pack } from '../core/packs/pack.ts';
import { createEgress, type Network } from './egress/egress.ts';

interface Deps {
  readonly clock: Clock;
  readonly network: Network;
  readonly fetchHosts: readonly string[];
}

/** The packs that ask outside, all by one way. Nobody is asked before one of them is run. */
export function packsOutside({ clock, network, fetchHosts }: Deps): readonly Pack[] {
  const egress = createEgress({ ...network, clock });
  return [httpFetch({ egress, hosts: fetchHosts }), ...githubPacks(new GitHub({ egress, clock }))];
}
