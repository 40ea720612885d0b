/**
 * The worst effect of an operation. Every row of the operations table names one, so that nobody adds an operation without
 * considering what it can destroy or disclose. On the desktop, the owner must agree to some effects before the operation runs.
 * Agents are never asked: the scopes of their tokens decide.
 *
 * - `none`: changes nothing that outlives the call.
 * - `reversible`: changes something that can be changed back, such as a fact with earlier versions, a setting, or access.
 * - `runs`: runs packs, which have effects of their own. The calls of a pack to the memory pass through `perform`, which checks
 *   their effects.
 * - `destroys`: deletes or replaces something that cannot be restored.
 * - `grants`: gives a program or a person new access to the memory.
 * - `discloses`: sends data from the memory, or the caller's input, to another program or machine.
 * - `executes`: allows a program to start on this machine that was not allowed before.
 */
export type Effect = 'none' | 'reversible' | 'runs' | ConsentEffect;

/** An effect that depends on the parsed input. */
export interface EffectByInput {
  readonly when: (input: never) => boolean;
  /** The condition in words, for docs/effects.md. */
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
