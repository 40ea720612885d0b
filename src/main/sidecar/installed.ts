import type { HostMachine, OllamaSettings } from '../config/config.ts';
import { type OllamaBinary, findBinary, defaultPaths } from './binary.ts';
import type { EmbeddingsChoice } from './choice.ts';

interface Deps {
  readonly machine: HostMachine;
  readonly settings: OllamaSettings;
}

/** Finds Ollama on this machine, and stores the last result. */
export class InstalledOllama {
  readonly #deps: Deps;
  #binary: OllamaBinary | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  get binary(): OllamaBinary | undefined {
    return this.#binary;
  }

  async find(): Promise<OllamaBinary> {
    const { machine, settings } = this.#deps;
    const places = settings.path === undefined ? defaultPaths(machine) : [settings.path];
    this.#binary = undefined;
    return (this.#binary = await findBinary(places, machine.platform));
  }
}

/** True if the owner approved a program with exactly this path and content. */
export const isApproved = ({ path, size, sha256 }: OllamaBinary, { approved }: EmbeddingsChoice): boolean =>
  approved?.path === path && approved.size === size && approved.sha256 === sha256;
