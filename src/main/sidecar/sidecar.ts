import { statfs } from 'node:fs/promises';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { EmbeddingsReport, SetEmbeddingsInput } from '../../contract/embeddings.ts';
import { Failure } from '../../contract/failure.ts';
import { EMBEDDING } from '../../contract/limits.ts';
import type { SidecarState } from '../../contract/status.ts';
import type { Clock } from '../../core/clock.ts';
import type { Embeddings, Vectors } from '../../core/embeddings.ts';
import { time } from '../../core/time.ts';
import type { Machine, OllamaSettings } from '../config.ts';
import { type Binary, findBinary, usualPlaces } from './binary.ts';
import { startChild } from './child.ts';
import { type Choice, keepChoice, readChoice } from './choice.ts';
import { Life } from './life.ts';
import { Line } from './line.ts';
import { isAmong, knownModel } from './models.ts';
import { freePort, ownerOf, type PortOwner } from './port-owner.ts';
import { LEAST_VERSION, Trouble } from './trouble.ts';
import { NotThere, OllamaWire } from './wire.ts';

const SECOND = 1000;

/** How long is waited for what, in ms. */
export interface Times {
  /** From its start until it listens. */
  readonly ready: number;
  /** For what takes no time when all is well. */
  readonly look: number;
  readonly embed: number;
  /** Without a step while a model is fetched. */
  readonly pull: number;
  /** Until it is ended at once. */
  readonly grace: number;
  /** Before it is tried again, the last one from then on. At most 5 times in 10 minutes. */
  readonly again: readonly number[];
  /** After so long a life all is forgotten that went wrong before. */
  readonly settled: number;
}

const TIMES: Times = {
  ready: 20 * SECOND,
  look: 5 * SECOND,
  embed: EMBEDDING.patience * SECOND,
  pull: 60 * SECOND,
  grace: 3 * SECOND,
  again: [1, 5, 30, 120, 300].map((seconds) => seconds * SECOND),
  settled: 600 * SECOND,
};

/** So many answers of one life may be failures of Ollama's own; one alone may be the fault of what was asked. */
const BROKEN = 3;
/** Models have about five. */
const MOST_LAYERS = 1000;
const BETWEEN_LOOKS_MS = 40;
const BETWEEN_STEPS_MS = 200;

interface Options {
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
  #binary: Binary | undefined;
  #unsafe: string | undefined;
  #dimensions: number | undefined;

  constructor(options: Options) {
    this.#options = options;
    this.#times = { ...TIMES, ...options.times };
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
    if (this.#fetches()) return;
    await this.#refuseWithoutRoom();
    // It may have ended meanwhile, or somebody else may have begun.
    const life = this.#life;
    if (this.#fetches() || !life?.wire) return;
    this.#become({ at: 'pulling', model: this.model, done: 0, of: 0 });
    void this.#fetch(life, life.wire);
  }

  async cancelPull(): Promise<void> {
    await this.#life?.cancelPull();
  }

  embed(subject: string, texts: readonly string[], signal?: AbortSignal): Promise<Vectors> {
    if (this.#state.at !== 'ready') return Promise.reject(refusalOf(this.#state, this.#options.clock));
    return this.#line.inTurn(subject, async () => {
      const vectors: (readonly number[])[] = [];
      let tokens = 0;
      for (let at = 0; at < texts.length; at += EMBEDDING.batch) {
        const part = await this.#embedSome(texts.slice(at, at + EMBEDDING.batch), signal);
        vectors.push(...part.vectors);
        tokens += part.tokens;
      }
      return { vectors, tokens };
    });
  }

  async report(): Promise<EmbeddingsReport> {
    const { folder, settings } = this.#options;
    const known = knownModel(settings.model);
    const disk = await statfs(folder).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => undefined,
    );
    const { version, log } = this.#life ?? {};
    return {
      state: this.#state,
      on: this.#choice.on,
      adopt: this.#choice.adopt,
      adoptable: settings.url.origin,
      ...(this.#binary && { ollama: { ...this.#binary, approved: this.#isApproved(this.#binary) } }),
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
    if (same && WELL.has(this.#state.at)) return;
    this.#keep({ ...this.#choice, on, adopt });
    this.#failures = 0;
    await this.#end();
    if (!on) this.#become(OFF);
    else if (this.#awake) this.#begin();
    else this.#become(ASLEEP);
  }

  async #approve(sha256: string): Promise<void> {
    const binary = await this.#find().catch((error: unknown) => {
      throw error instanceof Trouble ? refusalOf(stateOf(error)) : error;
    });
    if (binary.sha256 !== sha256) {
      throw new Failure(
        'invalid_input',
        'hash is not that of the Ollama that was found; look at it again, and send what is shown.',
      );
    }
    this.#binary = binary;
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
    try {
      await this.#ending;
      life.signal.throwIfAborted();
      if (this.#choice.adopt) life.wire = this.#adopted();
      else if (!(await this.#startOwn(life))) return;
      await this.#look(life);
    } catch (error) {
      this.#fail(life, error);
    }
  }

  #adopted(): OllamaWire {
    const { url } = this.#options.settings;
    const host = url.hostname === '[::1]' ? '::1' : '127.0.0.1';
    return new OllamaWire({
      host,
      port: Number(url.port || 80),
      clock: this.#options.clock,
      prove: () => Promise.resolve(),
    });
  }

  /** False where the owner has to be asked first. */
  async #startOwn(life: Life): Promise<boolean> {
    const { folder, clock, machine, port: choosePort = freePort } = this.#options;
    const binary = await this.#find();
    life.signal.throwIfAborted();
    if (!this.#isApproved(binary)) {
      const changed = this.#choice.approved !== undefined;
      this.#become({ at: 'unapproved', changed, remedy: changed ? CHANGED : APPROVE });
      return false;
    }
    const port = await choosePort();
    life.signal.throwIfAborted();
    const child = startChild({
      path: binary.path,
      port,
      home: join(folder, 'embeddings'),
      environment: machine.environment,
      hear: (chunk) => life.hear(chunk),
      graceMs: this.#times.grace,
    });
    life.own(child);
    void child.ended.then(async () => {
      // What it could not have is told, rather than that it ended.
      const taken = !life.flooded && !life.wire && (await ownerOf(port, child.pid)) === 'another';
      this.#fail(life, new Trouble(taken ? 'port_taken' : 'crashed'));
    });
    await this.#listening(life, port, child.pid);
    life.wire = new OllamaWire({ host: '127.0.0.1', port, clock, prove: () => proved(port, child.pid) });
    return true;
  }

  async #listening(life: Life, port: number, pid: number): Promise<void> {
    const until = performance.now() + this.#times.ready;
    for (;;) {
      const owner = await surelyOwnerOf(port, pid);
      life.signal.throwIfAborted();
      if (owner === 'it') return;
      if (owner === 'another') throw new Trouble('port_taken');
      if (performance.now() > until) throw new Trouble('hanging');
      await wait(BETWEEN_LOOKS_MS);
    }
  }

  /** Whether it is new enough and has the model. */
  async #look(life: Life): Promise<void> {
    const { look } = this.#times;
    const { wire } = life;
    if (!wire) return;
    life.version = await wire.version(look, life.signal);
    if (isOlder(life.version, LEAST_VERSION)) throw new Trouble('too_old');
    const names = await wire.models(look, life.signal);
    if (this.#life !== life) return;
    life.wellSince = this.#options.clock.steady();
    const { model } = this;
    this.#become(
      isAmong(model, names)
        ? { at: 'ready', model, whose: this.#choice.adopt ? 'adopted' : 'own' }
        : { at: 'no_model', model, remedy: PULL },
    );
  }

  async #fetch(life: Life, wire: OllamaWire): Promise<void> {
    const cancel = life.beginPull();
    try {
      await this.#fetchAll(life, wire, cancel);
    } catch (error) {
      if (!life.signal.aborted && !cancel.aborted) this.#fail(life, pullTrouble(error));
    } finally {
      life.endPull();
    }
    if (this.#state.at === 'pulling' && this.#life === life)
      await this.#look(life).catch((error: unknown) => this.#fail(life, error));
  }

  async #fetchAll(life: Life, wire: OllamaWire, cancel: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const layers = new Map<string, { done: number; of: number }>();
    const { model } = this;
    let toldAt = -Infinity;
    for await (const { error, digest, total, completed, status } of wire.pull(model, this.#times.pull, cancel)) {
      if (error !== undefined) throw pullTrouble(new Error(error));
      if (status === 'success') return;
      if (digest !== undefined && total > 0) layers.set(digest, { done: Math.min(completed, total), of: total });
      if (layers.size > MOST_LAYERS) throw new Trouble('pull_failed');
      if (this.#life !== life || clock.steady() - toldAt < BETWEEN_STEPS_MS) continue;
      toldAt = clock.steady();
      this.#become({ at: 'pulling', model, done: sum(layers, 'done'), of: sum(layers, 'of') });
    }
    throw new Trouble('pull_failed');
  }

  async #embedSome(texts: readonly string[], signal: AbortSignal | undefined): Promise<Vectors> {
    const life = this.#life;
    // It may have changed while this waited for its turn.
    if (this.#state.at !== 'ready' || !life?.wire) throw refusalOf(this.#state, this.#options.clock);
    if (signal?.aborted) throw leftAlone();
    try {
      const answer = await life.wire.embed(this.model, texts, this.#times.embed, life.until(signal));
      this.#requireFit(answer.vectors, texts.length);
      life.broken = 0;
      return answer;
    } catch (error) {
      if (signal?.aborted) throw leftAlone();
      throw this.#whyNot(life, error);
    }
  }

  /** What was indexed by vectors of another length could not be compared with these. */
  #requireFit(vectors: readonly (readonly number[])[], count: number): void {
    const wanted = knownModel(this.model)?.dimensions ?? this.#dimensions ?? vectors[0]?.length ?? 0;
    if (vectors.length !== count || wanted === 0 || vectors.some(({ length }) => length !== wanted)) {
      throw new Trouble('wrong_dimension');
    }
    this.#dimensions = wanted;
  }

  #whyNot(life: Life, error: unknown): Failure {
    if (this.#life !== life || life.signal.aborted) return refusalOf(this.#state, this.#options.clock);
    if (error instanceof NotThere) {
      this.#become({ at: 'no_model', model: this.model, remedy: PULL });
      return refusalOf(this.#state);
    }
    if (error instanceof Trouble && error.trouble === 'broken' && (life.broken += 1) < BROKEN) {
      return refusalOf(stateOf(error));
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
      this.#become(stateOf(trouble));
      return;
    }
    if (life.wellSince !== undefined && clock.steady() - life.wellSince >= this.#times.settled) this.#failures = 0;
    void this.#endLife(life);
    if (trouble.lasting) {
      this.#become(stateOf(trouble));
      return;
    }
    const { again } = this.#times;
    const ms = again[Math.min(this.#failures, again.length - 1)] ?? 0;
    this.#failures += 1;
    this.#again = clock.after(ms, () => {
      this.#again = undefined;
      this.#begin();
    });
    this.#become({ ...stateOf(trouble), retry_at: time(clock.now() + ms) });
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

  async #find(): Promise<Binary> {
    const { machine, settings } = this.#options;
    const places = settings.path === undefined ? usualPlaces(machine) : [settings.path];
    this.#unsafe = undefined;
    this.#binary = undefined;
    return (this.#binary = await findBinary(places, machine.platform));
  }

  #isApproved({ path, size, sha256 }: Binary): boolean {
    const { approved } = this.#choice;
    return approved?.path === path && approved.size === size && approved.sha256 === sha256;
  }

  /** Whether it does already; throws where it cannot. A life that failed is still shown, and fetches nothing any more. */
  #fetches(): boolean {
    const { at } = this.#state;
    if (!this.#life?.wire || this.#life.signal.aborted || at === 'starting') throw refusalOf(this.#state, this.#options.clock);
    return at === 'pulling';
  }

  async #refuseWithoutRoom(): Promise<void> {
    const { disk } = knownModel(this.model) ?? {};
    const { free } = await this.report();
    // Another Ollama keeps its models where we do not know.
    if (this.#choice.adopt || disk === undefined || free.disk === undefined || free.disk > disk * 1.1) return;
    throw new Failure(
      'disk_full',
      `The model takes ${inMegabytes(disk)} of the disk and ${inMegabytes(free.disk)} are free; make room, and fetch it again.`,
    );
  }
}

const OFF: SidecarState = { at: 'off' };
const ASLEEP: SidecarState = {
  at: 'asleep',
  remedy: 'Embeddings begin with the program; start it with: helmdeck-memory serve',
};
const APPROVE =
  'Ollama was found; look at its path and SHA-256 with helmdeck-memory embeddings status, and approve it with: helmdeck-memory embeddings approve';
const CHANGED = `This is not the Ollama that you approved. If you updated it, approve it anew: helmdeck-memory embeddings approve`;
const PULL = 'Fetch the model once: helmdeck-memory embeddings pull';

/** States that turning on again would only disturb. */
const WELL: ReadonlySet<SidecarState['at']> = new Set(['starting', 'ready', 'pulling', 'no_model', 'asleep']);
/** Ollama itself is well, so it goes on, and the model can be fetched by it. */
const STAYS: ReadonlySet<string> = new Set(['pull_failed', 'wrong_dimension']);

const stateOf = ({ trouble, why, remedy }: Trouble) => ({ at: 'failed', trouble, why, remedy }) as const;

/** What a state means to whoever asks for something that it does not allow. */
function refusalOf(state: SidecarState, clock?: Clock): Failure {
  const unavailable = (message: string, retryAfter?: number): Failure =>
    new Failure('embeddings_unavailable', message, retryAfter === undefined ? {} : { retryAfter });
  switch (state.at) {
    case 'off':
      return unavailable('Embeddings are off; the owner turns them on with: helmdeck-memory embeddings on');
    case 'starting':
      return unavailable('Embeddings are starting; ask again in a moment.', 2);
    case 'pulling':
      return unavailable('The model is being fetched; ask again when it is there.', 30);
    case 'failed': {
      const until = state.retry_at === undefined || !clock ? undefined : (Date.parse(state.retry_at) - clock.now()) / SECOND;
      return unavailable(`${state.why} ${state.remedy}`, until === undefined ? undefined : Math.max(1, until));
    }
    case 'ready':
      return unavailable('Embeddings are ready again; ask again.', 1);
    case 'asleep':
    case 'unapproved':
      return unavailable(`There are no embeddings yet. ${state.remedy}`);
    case 'no_model':
      return unavailable(`The model is not there yet. ${state.remedy}`);
  }
}

const leftAlone = (): Failure => new Failure('embeddings_unavailable', 'Nobody waits for this any more; ask again.');

/** One that is just ending may seem to be another for a moment: its socket is still listed, and it holds it no more. */
async function surelyOwnerOf(port: number, pid: number): Promise<PortOwner> {
  const owner = await ownerOf(port, pid);
  if (owner !== 'another') return owner;
  await wait(BETWEEN_LOOKS_MS);
  return ownerOf(port, pid);
}

async function proved(port: number, pid: number): Promise<void> {
  const owner = await surelyOwnerOf(port, pid);
  if (owner === 'another') throw new Trouble('port_taken');
  if (owner === 'nobody') throw new Trouble('crashed');
}

function pullTrouble(error: unknown): Trouble {
  if (error instanceof Trouble && error.trouble === 'pull_failed') return error;
  const text = error instanceof Error ? error.message : '';
  if (!/no space left/i.test(text)) return new Trouble('pull_failed');
  return new Trouble('pull_failed', {
    why: 'The disk is full.',
    remedy: 'Make room, and fetch the model again: helmdeck-memory embeddings pull',
  });
}

function isOlder(version: string, least: string): boolean {
  const numbers = (text: string): number[] => text.split(/[.-]/, 3).map(Number);
  const [one, other] = [numbers(version), numbers(least)];
  const at = one.findIndex((part, index) => part !== other[index]);
  return at !== -1 && (one[at] ?? 0) < (other[at] ?? 0);
}

const sum = (layers: ReadonlyMap<string, { done: number; of: number }>, which: 'done' | 'of'): number =>
  [...layers.values()].reduce((all, layer) => all + layer[which], 0);

const inMegabytes = (bytes: number): string => `${Math.round(bytes / 1_000_000).toLocaleString('en-US')} MB`;
