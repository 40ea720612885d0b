import { type Caller, hasScope } from '../../core/access/caller.ts';
import { isOffered } from '../../core/access/pack-offers.ts';
import type { CallContext } from '../../core/operations/call-context.ts';
import type { Perform } from '../../core/operations/perform.ts';
import type { Catalogue } from '../../core/packs/catalogue.ts';
import { type Pack, toolNameOf } from '../../core/packs/pack.ts';
import { type CallToolResult, quotedResult } from './tool-result.ts';
import { toolInputSchema } from './tool-schema.ts';
import { SERVER_NAME_PREFIX } from './tools.ts';

/**
 * Name prefix of the packs that are part of this program. The tool of such a pack returns only the output, without the other
 * fields of a pack result.
 */
const BUILT_IN_PREFIX = 'helmdeck.';

interface Call {
  readonly pack: Pack;
  readonly caller: Caller;
  readonly input: unknown;
  /** The value of `session` in the request's `_meta`: the id of a pack session, not yet validated. */
  readonly packSession: unknown;
  readonly context: CallContext;
}

/** Offers packs as MCP tools to callers with the scope `packs:run` (R-MCP-11). */
export class PackTools {
  readonly #catalogue: Pick<Catalogue, 'all'>;
  readonly #perform: Perform;
  readonly #isTaken: (tool: string) => boolean;
  readonly #descriptions = new Map<Pack, object>();

  /** `isTaken` returns whether a tool name belongs to a memory tool. A pack cannot replace a memory tool. */
  constructor(catalogue: Pick<Catalogue, 'all'>, perform: Perform, isTaken: (tool: string) => boolean) {
    this.#catalogue = catalogue;
    this.#perform = perform;
    this.#isTaken = isTaken;
  }

  /** Returns the tools of the packs that the caller is offered. Each description is built once, because packs never change. */
  list(caller: Caller): readonly object[] {
    return this.#packs(caller).map((pack) => {
      const described = this.#descriptions.get(pack) ?? describe(pack);
      this.#descriptions.set(pack, described);
      return described;
    });
  }

  names(caller: Caller): string[] {
    return this.#packs(caller).map(toolNameOf);
  }

  /** Finds a pack by its tool name or pack name. The scope is checked later, so that the error can name the missing scope. */
  find(name: string): Pack | undefined {
    const wanted = new Set([name, name.replace(SERVER_NAME_PREFIX, '')]);
    return this.#all().find((pack) => wanted.has(toolNameOf(pack)) || wanted.has(pack.name));
  }

  async call({ pack, caller, input, packSession, context }: Call): Promise<CallToolResult> {
    const request = { name: pack.name, input, ...(packSession !== undefined && { session: packSession }) };
    const result = await this.#perform(caller, 'runPack', request, context);
    return quotedResult(isBuiltIn(pack) ? (result.output as object) : result);
  }

  #packs(caller: Caller): readonly Pack[] {
    return hasScope(caller, 'packs:run') ? this.#all().filter((pack) => !pack.off && isOffered(caller, pack)) : [];
  }

  #all(): readonly Pack[] {
    return this.#catalogue.all.filter((pack) => !this.#isTaken(toolNameOf(pack)));
  }
}

const isBuiltIn = ({ name }: Pack): boolean => name.startsWith(BUILT_IN_PREFIX);

function describe(pack: Pack): object {
  const { title, description, input, changes = 'nothing', usesNetwork = false } = pack;
  return {
    name: toolNameOf(pack),
    title,
    description,
    inputSchema: { ...toolInputSchema(input), type: 'object' },
    annotations: {
      readOnlyHint: changes === 'nothing',
      destructiveHint: changes === 'destroys',
      idempotentHint: changes === 'nothing',
      openWorldHint: usesNetwork,
    },
  };
}
