import { Failure } from '../../contract/failure.ts';
import { KNOWN_CLIENTS } from '../../contract/names.ts';
import { CLOCK_TOLERANCE_MS } from '../../contract/upkeep.ts';
import type { Upkeep } from '../store/store.ts';
import { formatTime } from '../time/format-time.ts';
import type { Memory, MemoryDeps } from './memory.ts';

type UpkeepOperations = Pick<
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

/** Operations on tokens, keys, backups and checks. All of them need the scope `admin`. */
export const upkeep = ({ store, tokens, packs, clock }: MemoryDeps): UpkeepOperations => {
  const requireUpkeep = (): Upkeep => {
    if (store.upkeep) return store.upkeep;
    throw new Failure(
      'key_unavailable',
      'This memory is in RAM only, so it has no key to rotate and no file to back up; create a key first with: helmdeck-memory key init.',
    );
  };
  return {
    async mintToken(_caller, input) {
      const isAdmin = input.scopes.includes('admin');
      if (isAdmin && input.quarantine === true) {
        throw new Failure(
          'invalid_input',
          'quarantine has no effect with the scope admin, because such a token can accept its own writes; leave one of them out.',
        );
      }
      return tokens.mint({ ...input, quarantine: input.quarantine ?? (!isAdmin && !KNOWN_CLIENTS.has(input.client)) });
    },
    tokens: async () => tokens.list(),
    revokeToken: async (_caller, input) => tokens.revoke(input),
    pauseToken: async (_caller, input) => tokens.pause(input),
    async lock() {
      store.lock();
      return { key: store.status().key };
    },
    async unlock() {
      const key = await store.unlock();
      // Resume sessions and runs in the background. Until then, callers already see an interrupted run as interrupted.
      void packs.resume().catch(() => undefined);
      return { key };
    },
    async rotateKey() {
      await requireUpkeep().rotate();
      return { key: store.status().key };
    },
    makeRecoveryKey: async () => ({ recovery_key: await requireUpkeep().makeRecoveryKey() }),
    async backup() {
      const { file, at, broken } = await requireUpkeep().backup();
      return { file, at: formatTime(at), broken };
    },
    backups: async () => ({
      backups: (store.upkeep?.backups() ?? []).map(({ file, at }) => ({ file, at: formatTime(at) })),
      recovery_key: store.upkeep?.recoverable ?? false,
    }),
    async trustClock(_caller, { time, dry_run }) {
      const [machine, whose] = store.wall ? [store.wall(), 'the database server'] : [clock.now(), 'this machine'];
      if (Math.abs(Date.parse(time) - machine) > CLOCK_TOLERANCE_MS) {
        throw new Failure(
          'invalid_input',
          `time must match the clock of ${whose}, which shows ${formatTime(machine)}; check the clock and try again.`,
        );
      }
      const expired = await store.countExpiredFacts();
      if (!dry_run) await store.trustClock();
      return { clock: store.status().clock, expired };
    },
    async verify() {
      const { entries, broken, structure } = await requireUpkeep().verify();
      return { entries, broken, structure: [...structure] };
    },
  };
};
