import { Failure } from '../../contract/failure.ts';
import type { PackList } from '../../contract/pack.ts';
import { isAtHand } from '../../contract/status.ts';
import { Authorship } from '../authorship.ts';
import type { Clock } from '../clock.ts';
import { Pipelines } from '../pipelines/pipelines.ts';
import type { MemoryStore } from '../store.ts';
import type { Tokens } from '../tokens.ts';
import { Audit, auditHook } from './audit.ts';
import { cacheHook } from './cache.ts';
import { captureHook } from './capture.ts';
import { Catalogue } from './catalogue.ts';
import { type Credentials, credentialHook } from './credentials.ts';
import { Defaults } from './defaults.ts';
import { Engine } from './engine.ts';
import type { Hook } from './hook.ts';
import { memoryHook } from './memory-hook.ts';
import type { Pack } from './pack.ts';
import { Sessions } from './sessions.ts';

/** Everything about packs that operations need. */
export interface Packs {
  readonly engine: Engine;
  readonly sessions: Sessions;
  readonly audit: Audit;
  readonly defaults: Defaults;
  readonly pipelines: Pipelines;
  readonly authorship: Authorship;
  /** Clears up what an earlier start left behind; as far as that needs the key, again when it has come. */
  resume(): Promise<void>;
  /** Packs of the owner's own that could not be taken. */
  readonly skipped: NonNullable<PackList['skipped']>;
}

export interface PacksOptions {
  readonly store: MemoryStore;
  readonly clock: Clock;
  /** Left out where nobody comes with one. */
  readonly tokens?: Pick<Tokens, 'onRevoked' | 'grants'>;
  readonly packs?: readonly Pack[];
  readonly skipped?: Packs['skipped'];
  readonly credentials?: Credentials;
  /** See runs before memory, cache and audit do, and after they did. */
  readonly hooks?: readonly Hook[];
  readonly log?: (pack: string, text: string) => void;
  readonly trouble?: (what: string) => void;
}

/** The engine with its own hooks. Packs that ask the memory itself are added when there is a door to ask by. */
export function createPacks(options: PacksOptions): Packs & Disposable {
  const { store, clock, tokens, packs = [], skipped = [], credentials, hooks = [], log, trouble = () => undefined } = options;
  const sessions = new Sessions(store, clock, () => trouble('the end of a session'));
  const audit = new Audit(store);
  const catalogue = new Catalogue();
  for (const pack of packs) catalogue.add(pack);
  const own = [
    auditHook(audit),
    memoryHook(store, sessions),
    captureHook,
    ...(credentials ? [credentialHook(credentials)] : []),
    cacheHook(store),
  ];
  const engine = new Engine({ catalogue, hooks: [...hooks, ...own], clock, trouble, ...(log && { log }) });
  const defaults = new Defaults(store);
  const authorship = new Authorship(tokens);
  const pipelines = new Pipelines({ store, engine, audit, authorship, clock, trouble: () => trouble('the end of a pipeline') });
  const revocations = tokens?.onRevoked((token) => {
    const why = new Failure(
      'invalid_token',
      'The token that started this run was revoked or paused; start it again with one that holds, if it is still wanted.',
    );
    // In this order: no next step begins.
    pipelines.endRunsOf(token, why);
    engine.endRunsOf(token, why);
    void pipelines.endOrphans();
  });
  const locks = store.follow(({ what }) => {
    const { key } = store.status();
    if (what !== 'doubt' || isAtHand(key)) return;
    const why = new Failure('key_unavailable', `The memory was locked before this run had ended. ${key.remedy}`);
    pipelines.endAllRuns(why);
    engine.endAllRuns(why);
  });
  return {
    engine,
    sessions,
    audit,
    defaults,
    pipelines,
    authorship,
    skipped,
    async resume() {
      await sessions.clear();
      await pipelines.endLeftovers();
    },
    [Symbol.dispose]() {
      revocations?.[Symbol.dispose]();
      locks[Symbol.dispose]();
      pipelines[Symbol.dispose]();
      defaults[Symbol.dispose]();
      sessions[Symbol.dispose]();
    },
  };
}
