/**
 * What an operation can do beyond this memory's usual writes. Every row of the operations table names one, so that a new
 * operation cannot be added without answering what it can destroy or give away. The window's owner is asked before
 * an effect that needs their consent; agents are never asked, because their token's scopes decide for them.
 *
 * - `none`: changes nothing that outlives the call.
 * - `reversible`: changes something that can be changed back: earlier versions of a fact, a setting, a run that can be
 *   started again, access that can be granted again.
 * - `runs`: runs packs, each of which has effects of its own. What a pack asks of the memory goes through `perform` again
 *   and is decided there.
 * - `destroys`: deletes or replaces something that cannot be brought back.
 * - `grants`: gives a program or a person access that they do not have, or makes a way in that opens the memory.
 * - `discloses`: sends what the memory holds, or what the caller typed, to another program or another machine.
 * - `executes`: lets a program start on this machine that could not be started before.
 */
export type Effect = 'none' | 'reversible' | 'runs' | ConsentEffect;

/** An effect that depends on the parsed input. Both outcomes stand in the table, so that it can be listed. */
export interface EffectByInput {
  readonly when: (input: never) => boolean;
  /** The same condition for the list of effects. */
  readonly condition: string;
  readonly effect: Effect;
  readonly otherwise: Effect;
}

/** The effects that the window's owner must agree to. */
export type ConsentEffect = 'destroys' | 'grants' | 'discloses' | 'executes';

const NEEDS_CONSENT = {
  none: false,
  reversible: false,
  runs: false,
  destroys: true,
  grants: true,
  discloses: true,
  executes: true,
} as const satisfies { [Each in Effect]: Each extends ConsentEffect ? true : false };

export const needsConsent = (effect: Effect): effect is ConsentEffect => NEEDS_CONSENT[effect];
