import { statfs } from 'node:fs/promises';
import { freemem } from 'node:os';
import type { EmbeddingsReport, SetEmbeddingsInput } from '../../contract/embeddings.ts';
import { Failure } from '../../contract/failure.ts';
import { EMBEDDING } from '../../contract/limits.ts';
import type { SidecarState } from '../../contract/status.ts';
import type { Clock } from '../../core/clock.ts';
import type { Embeddings, Vectors } from '../../core/embeddings.ts';
import { time } from '../../core/time.ts';
import type { Machine, OllamaSettings } from '../config.ts';
import { adopted } from './adopted.ts';
import { type Choice, keepChoice, readChoice } from './choice.ts';
import { fetchModel, pullTrouble, refuseWithoutRoom } from './fetch-model.ts';
import { Fitting } from './fitting.ts';
import { Installed, isApproved } from './installed.ts';
import { Life } from './life.ts';
import { limitOf } from './limit.ts';
import { Line } from './line.ts';
import { isAmong, knownModel } from './models.ts';
import { startOwn } from './own.ts';
import { freePort } from './port-owner.ts';
import { ASLEEP, failed, isWell, noModel, OFF, refusalOf, unapproved } from './states.ts';
import { TIMES, type Times } from './times.ts';
import { Trouble } from './trouble.ts';
import { isOlder, LEAST_VERSION } from './version.ts';
import { NotThere, type OllamaWire } from './wire.ts';

/** So many answers of one life may be failures of Ollama's own; one alone may be the fault of what was asked. */
const BROKEN = 3;
/** Ollama itself is well, so it goes on, and the model can be fetched by it. */
const STAYS: ReadonlySet<string> = new Set(['pull_failed', 'wrong_dimension']);

export interface Options {
  readonly folder: string;
  readonly clock: Clock;
  readonly settings: OllamaSettings;
  readonly machine: Machine;
  readonly hear?: ((state: SidecarState) => void) | undefined;
  readonly times?: Partial<Times>;
  /** Another choice of ports, for a test that has one taken. */
  readonly port?: () => Promise<number>;
}

/**
 * Finds or adopts an Ollama, keeps it going, and ends it. It looks at it when something is asked of it and when it ends, and at no
 * other time: on and idle it does nothing at all.
 */
export class Sidecar implements Embeddings, AsyncDisposable {
  readonly #options: Options;
  readonly #times: Times;
  readonly #installed: Installed;
  readonly #fitting: Fitting;
  readonly #line = new Line();
  #choice: Choice;
  #state: SidecarState;
  /** Whether the program runs that serves what is embedded. */
  #awake = false;
  #life: Life | undefined;
  #ending: Promise<void> = Promise.resolve();
  #turn: Promise<void> = Promise.resolve();
  #again: Disposable | undefined;
  #failures = 0;
  #unsafe: string | undefined;

  constructor(options: Options) {
    this.#options = options;
    this.#times = { ...TIMES, ...options.times };
    this.#installed = new Installed(options);
    this.#fitting = new Fitting(options.settings.model);
    this.#choice = readChoice(options.folder);
    this.#state = this.#choice.on ? ASLEEP : OFF;
  }

  get state(): SidecarState {
    return this.#state;
  }

  get model(): string {
    return this.#options.settings.model;
  }

  /** From now on the program runs. */
  wake(): void {
    this.#awake = true;
    if (this.#choice.on) this.#begin();
  }

  choose(choice: SetEmbeddingsInput): Promise<void> {
    return this.#inTurn(() => this.#choose(choice));
  }

  approve(sha256: string): Promise<void> {
    return this.#inTurn(() => this.#approve(sha256));
  }

  async pull(): Promise<void> {
    await this.#life?.cancelled();
    if (this.#fetches()) return;
    // Another Ollama keeps its models where we do not know.
    if (!this.#choice.adopt) refuseWithoutRoom(this.model, (await this.report()).free);
    // It may have ended meanwhile, or somebody else may have begun.
    const life = this.#life;
    if (this.#fetches() || !life?.wire) return;
    this.#become({ at: 'pulling', model: this.model, done: 0, of: 0 });
    void this.#fetch(life, life.wire);
  }

  async cancelPull(): Promise<void> {
    await this.#life?.cancelPull();
  }

  async embed(subject: string, texts: readonly string[], signal?: AbortSignal): Promise<Vectors> {
    const { clock } = this.#options;
    if (this.#state.at !== 'ready') throw refusalOf(this.#state, clock);
    using _place = this.#line.enter(subject);
    using limit = limitOf(clock, this.#times.question, signal);
    const vectors: (readonly number[])[] = [];
    let tokens = 0;
    for (let at = 0; at < texts.length; at += EMBEDDING.batch) {
      const some = texts.slice(at, at + EMBEDDING.batch);
      const part = await this.#line.inTurn(subject, limit.signal, () => this.#embedSome(some, limit.signal));
      vectors.push(...part.vectors);
      tokens += part.tokens;
    }
    return { vectors, tokens };
  }

  async report(): Promise<EmbeddingsReport> {
    const { folder, settings } = this.#options;
    const known = knownModel(settings.model);
    const disk = await statfs(folder).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => undefined,
    );
    const { version, log } = this.#life ?? {};
    const { binary } = this.#installed;
    return {
      state: this.#state,
      on: this.#choice.on,
      adopt: this.#choice.adopt,
      adoptable: settings.url.origin,
      ...(binary && { ollama: { ...binary, approved: isApproved(binary, this.#choice) } }),
      ...(this.#unsafe !== undefined && { ollama: { path: this.#unsafe, approved: false } }),
      ...(version !== undefined && { version }),
      model: { name: settings.model, ...(known && { disk: known.disk, memory: known.memory }) },
      free: { ...(disk !== undefined && { disk }), memory: freemem() },
      log: [...(log?.lines ?? [])],
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#awake = false;
    await this.#inTurn(() => this.#end());
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(step);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #choose({ on, adopt = this.#choice.adopt }: SetEmbeddingsInput): Promise<void> {
    const same = on && this.#choice.on && adopt === this.#choice.adopt;
    if (same && isWell(this.#state)) {
      await this.#lookForModel();
      return;
    }
    this.#keep({ ...this.#choice, on, adopt });
    this.#failures = 0;
    const ended = this.#end();
    // Whoever asks while it ends is told how it stands from now on.
    if (!on) this.#become(OFF);
    else if (this.#awake) this.#begin();
    else this.#become(ASLEEP);
    await ended;
  }

  async #approve(sha256: string): Promise<void> {
    this.#unsafe = undefined;
    const binary = await this.#installed.find().catch((error: unknown) => {
      throw error instanceof Trouble ? refusalOf(failed(error)) : error;
    });
    if (binary.sha256 !== sha256) {
      throw new Failure(
        'invalid_input',
        'hash is not that of the Ollama that was found; look at it again, and send what is shown.',
      );
    }
    this.#keep({ ...this.#choice, approved: binary });
    if (this.#state.at !== 'unapproved' || !this.#awake) return;
    await this.#end();
    this.#begin();
  }

  #keep(choice: Choice): void {
    keepChoice(this.#options.folder, choice);
    this.#choice = choice;
  }

  #become(state: SidecarState): void {
    this.#state = state;
    this.#options.hear?.(state);
  }

  #begin(): void {
    const life = new Life(this.#options.clock, this.#life?.log);
    this.#life = life;
    this.#become({ at: 'starting' });
    void this.#live(life);
  }

  async #live(life: Life): Promise<void> {
    const { settings, clock } = this.#options;
    try {
      await this.#ending;
      life.signal.throwIfAborted();
      life.wire = this.#choice.adopt ? adopted(settings.url, clock) : await this.#startOwn(life);
      if (life.wire) await this.#look(life, life.wire);
    } catch (error) {
      this.#fail(life, error);
    }
  }

  /** Undefined where the owner has to be asked first. */
  async #startOwn(life: Life): Promise<OllamaWire | undefined> {
    const { folder, clock, machine, port: choosePort = freePort } = this.#options;
    this.#unsafe = undefined;
    const binary = await this.#installed.find();
    life.signal.throwIfAborted();
    if (!isApproved(binary, this.#choice)) {
      this.#become(unapproved(this.#choice.approved !== undefined));
      return undefined;
    }
    const port = await choosePort();
    life.signal.throwIfAborted();
    const onEnd = (why: Trouble): void => this.#fail(life, why);
    return startOwn(life, { path: binary.path, port, folder, clock, machine, times: this.#times, onEnd });
  }

  /** Whether it is new enough and has the model. */
  async #look(life: Life, wire: OllamaWire): Promise<void> {
    const { look } = this.#times;
    life.version = await wire.version(look, life.signal);
    if (isOlder(life.version, LEAST_VERSION)) throw new Trouble('too_old');
    const names = await wire.models(look, life.signal);
    if (this.#life !== life) return;
    life.wellSince = this.#options.clock.steady();
    const { model } = this;
    const whose = this.#choice.adopt ? 'adopted' : 'own';
    this.#become(isAmong(model, names) ? { at: 'ready', model, whose } : noModel(model));
  }

  /** Its owner may have fetched it by hand, which nobody tells. */
  async #lookForModel(): Promise<void> {
    const life = this.#life;
    if (this.#state.at !== 'no_model' || !life?.wire) return;
    await this.#look(life, life.wire).catch((error: unknown) => this.#fail(life, error));
  }

  /** Whether it does already; throws where it cannot. A life that failed is still shown, and fetches nothing any more. */
  #fetches(): boolean {
    const { at } = this.#state;
    if (!this.#life?.wire || this.#life.signal.aborted || at === 'starting') throw refusalOf(this.#state, this.#options.clock);
    return at === 'pulling';
  }

  async #fetch(life: Life, wire: OllamaWire): Promise<void> {
    const { model } = this;
    const cancel = life.beginPull();
    try {
      for await (const far of fetchModel(wire, {
        model,
        clock: this.#options.clock,
        patienceMs: this.#times.pull,
        cancel,
      })) {
        if (this.#life === life) this.#become({ at: 'pulling', model, ...far });
      }
    } catch (error) {
      if (!life.signal.aborted && !cancel.aborted) this.#fail(life, pullTrouble(error));
    }
    if (this.#state.at === 'pulling' && this.#life === life)
      await this.#look(life, wire).catch((error: unknown) => this.#fail(life, error));
    // Not before it is known how it stands: whoever waits for this may fetch again at once.
    life.endPull();
  }

  async #embedSome(texts: readonly string[], signal: AbortSignal): Promise<Vectors> {
    const life = this.#life;
    // It may have changed while this waited for its turn.
    if (this.#state.at !== 'ready' || !life?.wire) throw refusalOf(this.#state, this.#options.clock);
    try {
      const answer = await life.wire.embed(this.model, texts, this.#times.embed, life.until(signal));
      this.#fitting.require(answer.vectors, texts.length);
      life.broken = 0;
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      throw this.#whyNot(life, error);
    }
  }

  #whyNot(life: Life, error: unknown): Failure {
    if (this.#life !== life || life.signal.aborted) return refusalOf(this.#state, this.#options.clock);
    if (error instanceof NotThere) {
      this.#become(noModel(this.model));
      return refusalOf(this.#state);
    }
    if (error instanceof Trouble && error.trouble === 'broken' && (life.broken += 1) < BROKEN) {
      return refusalOf(failed(error));
    }
    this.#fail(life, error);
    return refusalOf(this.#state, this.#options.clock);
  }

  #fail(life: Life, error: unknown): void {
    // What failed in a life that is over concerns nobody.
    if (this.#life !== life || life.signal.aborted) return;
    // One that was ended for it fails whatever is asked at that moment.
    const trouble = life.flooded ? new Trouble('flooding') : this.#asTrouble(error);
    this.#unsafe = trouble.path;
    const { clock } = this.#options;
    if (life.wire && STAYS.has(trouble.trouble)) {
      this.#become(failed(trouble));
      return;
    }
    if (life.wellSince !== undefined && clock.steady() - life.wellSince >= this.#times.settled) this.#failures = 0;
    void this.#endLife(life);
    if (trouble.lasting) {
      this.#become(failed(trouble));
      return;
    }
    const { again } = this.#times;
    const ms = again[Math.min(this.#failures, again.length - 1)] ?? 0;
    this.#failures += 1;
    this.#again = clock.after(ms, () => {
      this.#again = undefined;
      this.#begin();
    });
    this.#become({ ...failed(trouble), retry_at: time(clock.now() + ms) });
  }

  #asTrouble(error: unknown): Trouble {
    if (error instanceof Trouble) return error;
    if (error instanceof NotThere) return new Trouble('broken');
    return new Trouble(this.#choice.adopt ? 'gone' : 'crashed', {}, { cause: error });
  }

  async #end(): Promise<void> {
    this.#again?.[Symbol.dispose]();
    this.#again = undefined;
    const life = this.#life;
    this.#life = undefined;
    if (life) await this.#endLife(life);
    await this.#ending;
  }

  /** The next one begins when nothing of this one is left. */
  #endLife(life: Life): Promise<void> {
    return (this.#ending = Promise.all([this.#ending, life.end()]).then(() => undefined));
  }
}
