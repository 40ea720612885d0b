import type { Machine, OllamaSettings } from '../config.ts';
import { type Binary, findBinary, usualPlaces } from './binary.ts';
import type { Choice } from './choice.ts';

interface Deps {
  readonly machine: Machine;
  readonly settings: OllamaSettings;
}

/** The Ollama on this machine that we would start, as it was found last. */
export class Installed {
  readonly #deps: Deps;
  #binary: Binary | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  get binary(): Binary | undefined {
    return this.#binary;
  }

  async find(): Promise<Binary> {
    const { machine, settings } = this.#deps;
    const places = settings.path === undefined ? usualPlaces(machine) : [settings.path];
    this.#binary = undefined;
    return (this.#binary = await findBinary(places, machine.platform));
  }
}

/** Exactly this one. */
export const isApproved = ({ path, size, sha256 }: Binary, { approved }: Choice): boolean =>
  approved?.path === path && approved.size === size && approved.sha256 === sha256;
