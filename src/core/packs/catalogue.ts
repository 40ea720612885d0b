import { Failure } from '../../contract/failure.ts';
import { PACK_NAME, PACK_VERSION } from '../../contract/pack.ts';
import { requireCacheTtl } from './cache.ts';
import { type Pack, toolNameOf } from './pack.ts';

export class Catalogue {
  readonly #packs = new Map<string, Pack>();
  readonly #tools = new Map<string, string>();

  /** Adds a pack. Throws if the name or tool name of the pack is already in use. */
  add(pack: Pack): void {
    if (!PACK_NAME.test(pack.name) || !PACK_VERSION.test(pack.version)) {
      throw new Failure('invalid_input', 'A pack needs a name such as weather.today and a version such as 1.0.0; correct both.');
    }
    requireCacheTtl(pack.name, pack.memory);
    const tool = toolNameOf(pack);
    const other = this.#tools.get(tool);
    if (other !== undefined) {
      throw new Failure('invalid_input', `The pack ${pack.name} has the same name or tool name as ${other}; rename one of them.`);
    }
    this.#tools.set(tool, pack.name);
    this.#packs.set(pack.name, pack);
  }

  /** All packs, sorted by name. */
  get all(): readonly Pack[] {
    return [...this.#packs.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  find(name: string): Pack {
    const pack = this.#packs.get(name);
    if (pack) return pack;
    throw new Failure('not_found', 'There is no such pack; list the packs to see their names.');
  }
}
