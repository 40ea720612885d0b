import { SECOND_MS } from '../../contract/units.ts';
import type { Clock } from '../../core/time/clock.ts';
import { findModelProcess, MAX_TOKENS } from './bundled-model.ts';
import { CRASHED, damaged, HANGING, ModelError } from './model-failure.ts';
import type { FromModel, LaunchModel, ModelFiles, ModelProcess, ToModel } from './model-messages.ts';

/** Long enough for a busy machine. A text takes 0.3 seconds at most, and loading less than a second. */
const TIMEOUT_MS = 60 * SECOND_MS;

interface Deps {
  readonly clock: Clock;
  readonly files: ModelFiles;
  readonly launch: LaunchModel;
}

/** The process of the bundled model, from its start to its end. Handles one request at a time. */
export class RunningModel {
  readonly #deps: Deps;
  readonly #process: ModelProcess;
  #answer: PromiseWithResolvers<FromModel> | undefined;
  #ended: Error | undefined;
  /** Resolves when the model is loaded. */
  readonly loaded: Promise<void>;

  constructor(deps: Deps) {
    const { files, launch } = deps;
    this.#deps = deps;
    this.#process = launch(findModelProcess(), files, {
      message: (message) => this.#answer?.resolve(message),
      exit: () => this.end(new ModelError(CRASHED)),
    });
    this.loaded = this.#load(files);
    this.loaded.catch(() => undefined);
  }

  async embed(text: string): Promise<Float32Array> {
    await this.loaded;
    const answer = await this.#ask({ text });
    if (answer.is !== 'vector') throw new ModelError(CRASHED);
    return answer.vector;
  }

  /** Kills the process. A pending request rejects with the reason. */
  end(reason: Error): void {
    this.#ended ??= reason;
    this.#process.kill();
    this.#answer?.reject(this.#ended);
  }

  async #load(files: ModelFiles): Promise<void> {
    const answer = await this.#ask({ files, maxTokens: MAX_TOKENS });
    if (answer.is === 'damaged') throw new ModelError(damaged(answer.file));
  }

  async #ask(message: ToModel): Promise<FromModel> {
    if (this.#ended) throw this.#ended;
    const answer = Promise.withResolvers<FromModel>();
    this.#answer = answer;
    using _timeout = this.#deps.clock.after(TIMEOUT_MS, () => this.end(new ModelError(HANGING)));
    this.#process.send(message);
    return await answer.promise;
  }
}
