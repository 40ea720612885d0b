import { PackResult } from '../../contract/pack.ts';
import { type Caller, hasScope } from '../../core/access/caller.ts';
import type { CallContext } from '../../core/operations/call-context.ts';
import type { Perform } from '../../core/operations/perform.ts';
import type { Catalogue } from '../../core/packs/catalogue.ts';
import { type Pack, toolNameOf } from '../../core/packs/pack.ts';
import { toolInputSchema, toolOutputSchema } from './tool-schema.ts';
import { SERVER_NAME_PREFIX } from './tools.ts';

/** Prefix of the program's own packs. As tools they return their output directly, without a pack result around it. */
const OWN_PREFIX = 'helmdeck.';

/** Output fields whose description is kept. */
const DESCRIBED_OUTPUT = ['output'];

interface Call {
  readonly pack: Pack;
  readonly caller: Caller;
  readonly input: unknown;
  /** The pack session in the request's `_meta`. */
  readonly packSession: unknown;
  readonly context: CallContext;
}

/** Packs as tools, for callers with the scope packs:run (R-MCP-11). */
export class PackTools {
  readonly #catalogue: Pick<Catalogue, 'all'>;
  readonly #perform: Perform;
  readonly #isTaken: (tool: string) => boolean;
  #list: readonly object[] = [];

  /** `isTaken` tells the names of memory tools, which a pack cannot replace. */
  constructor(catalogue: Pick<Catalogue, 'all'>, perform: Perform, isTaken: (tool: string) => boolean) {
    this.#catalogue = catalogue;
    this.#perform = perform;
    this.#isTaken = isTaken;
  }

  /** Rebuilt when packs have been added. Packs are never removed or replaced while the program runs. */
  list(caller: Caller): readonly object[] {
    const packs = this.#packs(caller);
    if (packs.length !== this.#list.length && packs.length > 0) this.#list = packs.map(describe);
    return packs.length === 0 ? [] : this.#list;
  }

  names(caller: Caller): string[] {
    return this.#packs(caller).map(toolNameOf);
  }

  /** Finds a pack by tool or pack name, for any caller: a call without the scope then fails with the reason. */
  find(name: string): Pack | undefined {
    const wanted = new Set([name, name.replace(SERVER_NAME_PREFIX, '')]);
    return this.#all().find((pack) => wanted.has(toolNameOf(pack)) || wanted.has(pack.name));
  }

  async call({ pack, caller, input, packSession, context }: Call): Promise<object> {
    const request = { name: pack.name, input, ...(packSession !== undefined && { session: packSession }) };
    const result = await this.#perform(caller, 'runPack', request, context);
    return isOwn(pack) ? (result.output as object) : result;
  }

  #packs(caller: Caller): readonly Pack[] {
    return hasScope(caller, 'packs:run') ? this.#all().filter(({ off }) => !off) : [];
  }

  #all(): readonly Pack[] {
    return this.#catalogue.all.filter((pack) => !this.#isTaken(toolNameOf(pack)));
  }
}

const isOwn = ({ name }: Pack): boolean => name.startsWith(OWN_PREFIX);

function describe(pack: Pack): object {
  const { title, description, input, output, changes = 'nothing', usesNetwork = false } = pack;
  const answer = isOwn(pack)
    ? output
    : PackResult().extend({ output: output.describe(PackResult().shape.output.description ?? '') });
  return {
    name: toolNameOf(pack),
    title,
    description,
    inputSchema: { ...toolInputSchema(input), type: 'object' },
    outputSchema: { ...toolOutputSchema(answer, DESCRIBED_OUTPUT), type: 'object' },
    annotations: {
      readOnlyHint: changes === 'nothing',
      destructiveHint: changes === 'destroys',
      idempotentHint: changes === 'nothing',
      openWorldHint: usesNetwork,
    },
  };
}
