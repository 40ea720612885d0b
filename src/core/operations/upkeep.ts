import { Failure } from '../../contract/failure.ts';
import { CLOCK_TOLERANCE_MS } from '../../contract/upkeep.ts';
import type { Upkeep } from '../store/store.ts';
import { formatTime } from '../time/format-time.ts';
import type { Memory, MemoryDeps } from './memory.ts';

type OfTheOwner = Pick<
  Memory,
  | 'mintToken'
  | 'tokens'
  | 'revokeToken'
  | 'pauseToken'
  | 'lock'
  | 'unlock'
  | 'rotateKey'
  | 'makeRecoveryKey'
  | 'backup'
  | 'backups'
  | 'trustClock'
  | 'verify'
>;

/** What only the owner may ask: who gets in, and that nothing is lost. */
export const upkeep = ({ store, tokens, packs, clock }: MemoryDeps): OfTheOwner => {
  const kept = (): Upkeep => {
    if (store.upkeep) return store.upkeep;
    throw new Failure(
      'unavailable',
      'This memory is in RAM only, so there is nothing to keep up; give it a key first, with: helmdeck-memory key init.',
    );
  };
  return {
    mintToken: async (_caller, input) => tokens.mint(input),
    tokens: async () => tokens.list(),
    revokeToken: async (_caller, input) => tokens.revoke(input),
    pauseToken: async (_caller, input) => tokens.pause(input),
    async lock() {
      store.lock();
      return { key: store.status().key };
    },
    async unlock() {
      const key = await store.unlock();
      // Nobody waits for that: what asks for a run meanwhile is told that it was cut short.
      void packs.resume().catch(() => undefined);
      return { key };
    },
    async rotateKey() {
      await kept().rotate();
      return { key: store.status().key };
    },
    makeRecoveryKey: async () => ({ recovery_key: await kept().makeRecoveryKey() }),
    async backup() {
      const { file, at, broken } = await kept().backup();
      return { file, at: formatTime(at), broken };
    },
    backups: async () => ({
      backups: (store.upkeep?.backups() ?? []).map(({ file, at }) => ({ file, at: formatTime(at) })),
      recovery_key: store.upkeep?.recoverable ?? false,
    }),
    async trustClock(_caller, { time: checked, dry_run }) {
      const machine = clock.now();
      if (Math.abs(Date.parse(checked) - machine) > CLOCK_TOLERANCE_MS) {
        throw new Failure(
          'invalid_input',
          `time must match the clock of this machine, which says ${formatTime(machine)}; check the clock again.`,
        );
      }
      const expired = await store.countExpiredFacts();
      if (!dry_run) await store.trustClock();
      return { clock: store.status().clock, expired };
    },
    async verify() {
      const { entries, broken, structure } = await kept().verify();
      return { entries, broken, structure: [...structure] };
    },
  };
};
