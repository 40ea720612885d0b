import { Failure } from '../../contract/failure.ts';
import type { PackList } from '../../contract/pack.ts';
import { isKeyAvailable } from '../../contract/status.ts';
import { Authorship } from '../access/authorship.ts';
import type { TokenRegistry } from '../access/token-registry.ts';
import { PipelineRunner } from '../pipelines/pipeline-runner.ts';
import type { MemoryStore } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { Audit, auditHook } from './audit.ts';
import { cacheHook, captureHook } from './cache.ts';
import { Catalogue } from './catalogue.ts';
import { type CredentialProvider, credentialHook } from './credential-store.ts';
import { Defaults } from './defaults.ts';
import { PackEngine } from './engine.ts';
import type { PackHook } from './hook.ts';
import { memoryHook } from './pack-memory.ts';
import type { Pack } from './pack.ts';
import { PackSessions } from './sessions.ts';

export interface PackServices {
  readonly engine: PackEngine;
  readonly sessions: PackSessions;
  readonly audit: Audit;
  readonly defaults: Defaults;
  readonly pipelines: PipelineRunner;
  readonly authorship: Authorship;
  /** Ends the sessions and runs that an earlier process left unfinished. Call this again when the key becomes available. */
  resume(): Promise<void>;
  /** The owner's packs that failed to load, with the reasons. */
  readonly skipped: NonNullable<PackList['skipped']>;
}

export interface PackServicesOptions {
  readonly store: MemoryStore;
  readonly clock: Clock;
  /** The tokens that clients use. Absent if the program accepts no tokens. */
  readonly tokens?: Pick<TokenRegistry, 'onRevoked' | 'grants' | 'offers'>;
  readonly packs?: readonly Pack[];
  readonly skipped?: PackServices['skipped'];
  readonly credentials?: CredentialProvider;
  /** Additional hooks. They run before the memory, cache and audit hooks, and finish after them. */
  readonly hooks?: readonly PackHook[];
  readonly log?: (pack: string, text: string) => void;
  /**
   * Reports an error that no caller receives. The error itself may contain private data, so only the place where it occurred is
   * given.
   */
  readonly reportError?: (where: string) => void;
}

/**
 * Creates the services that run packs. Packs that call operations are added later, because the operations need these services
 * first.
 */
export function createPackServices(options: PackServicesOptions): PackServices & Disposable {
  const { store, clock, tokens, packs = [], skipped = [], credentials, hooks = [], log, reportError = () => undefined } = options;
  // Do not report a `Failure`, which is an expected refusal, for example by a locked memory.
  const reportIn = (where: string) => (error: unknown) => {
    if (!(error instanceof Failure)) reportError(where);
  };
  const sessions = new PackSessions(store, clock, reportIn('the end of a session'));
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
  const engine = new PackEngine({
    catalogue,
    hooks: [...hooks, ...own],
    clock,
    reportError: (pack, error) => reportIn(`a hook of ${pack}`)(error),
    ...(log && { log }),
  });
  const defaults = new Defaults(store);
  const authorship = new Authorship(tokens);
  const pipelines = new PipelineRunner({
    store,
    engine,
    audit,
    authorship,
    clock,
    reportError: reportIn('the end of a pipeline'),
  });
  const revocations = tokens?.onRevoked((token) => {
    const why = new Failure(
      'invalid_token',
      'The token that started this run was revoked or paused. Start the run again with a valid token if needed.',
    );
    // Cancel pipelines before packs, so that no further step starts.
    pipelines.cancelRunsOf(token, why);
    engine.cancelRunsOf(token, why);
    void pipelines.cancelOrphanedRuns();
  });
  const locks = store.onKeyChange(() => {
    const { key } = store.status();
    if (isKeyAvailable(key)) return;
    const why = new Failure('key_unavailable', `The memory was locked before this run ended. ${key.remedy}`);
    pipelines.cancelAllRuns(why);
    engine.cancelAllRuns(why);
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
      await sessions.endLeftovers();
      await pipelines.endInterruptedRuns();
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
