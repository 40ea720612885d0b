import { PackResult } from '../../contract/pack.ts';
import { type Caller, hasScope } from '../../core/access/caller.ts';
import type { CallContext } from '../../core/operations/call-context.ts';
import type { Perform } from '../../core/operations/perform.ts';
import type { Catalogue } from '../../core/packs/catalogue.ts';
import { type Pack, toolNameOf } from '../../core/packs/pack.ts';
import { toolInputSchema, toolOutputSchema } from './tool-schema.ts';
import { SERVER_NAME_PREFIX } from './tools.ts';

/** What the program asks itself by way of a pack answers as a tool does, without a result around it. */
const OURS = 'helmdeck.';

/** Fields of a result that do not explain themselves. */
const SAID = ['output'];

interface Call {
  readonly pack: Pack;
  readonly caller: Caller;
  readonly given: unknown;
  /** As the request's `_meta` has it. */
  readonly session: unknown;
  readonly during: CallContext;
}

/** Packs as tools, for whoever may run them (R-MCP-11). */
export class PackTools {
  readonly #catalogue: Pick<Catalogue, 'all'>;
  readonly #perform: Perform;
  readonly #isTaken: (tool: string) => boolean;
  #list: readonly object[] = [];

  /** A pack cannot stand in the place of a tool of the memory. */
  constructor(catalogue: Pick<Catalogue, 'all'>, perform: Perform, isTaken: (tool: string) => boolean) {
    this.#catalogue = catalogue;
    this.#perform = perform;
    this.#isTaken = isTaken;
  }

  /** Made when it is asked for, and anew when packs were added since: none is ever taken away or replaced. */
  list(caller: Caller): readonly object[] {
    const packs = this.#packs(caller);
    if (packs.length !== this.#list.length && packs.length > 0) this.#list = packs.map(listed);
    return packs.length === 0 ? [] : this.#list;
  }

  names(caller: Caller): string[] {
    return this.#packs(caller).map(toolNameOf);
  }

  /** By the name of the tool or of the pack, also with our own in front. To whom it may not be shown it is still told why not. */
  find(name: string): Pack | undefined {
    const wanted = new Set([name, name.replace(SERVER_NAME_PREFIX, '')]);
    return this.#all().find((pack) => wanted.has(toolNameOf(pack)) || wanted.has(pack.name));
  }

  async call({ pack, caller, given, session, during }: Call): Promise<object> {
    const input = { name: pack.name, input: given, ...(session !== undefined && { session }) };
    const result = await this.#perform(caller, 'runPack', input, during);
    return isOurs(pack) ? (result.output as object) : result;
  }

  #packs(caller: Caller): readonly Pack[] {
    return hasScope(caller, 'packs:run') ? this.#all().filter(({ off }) => !off) : [];
  }

  #all(): readonly Pack[] {
    return this.#catalogue.all.filter((pack) => !this.#isTaken(toolNameOf(pack)));
  }
}

const isOurs = ({ name }: Pack): boolean => name.startsWith(OURS);

function listed(pack: Pack): object {
  const { title, description, input, output, changes = 'nothing', usesNetwork = false } = pack;
  const answer = isOurs(pack)
    ? output
    : PackResult().extend({ output: output.describe(PackResult().shape.output.description ?? '') });
  return {
    name: toolNameOf(pack),
    title,
    description,
    inputSchema: { ...toolInputSchema(input), type: 'object' },
    outputSchema: { ...toolOutputSchema(answer, SAID), type: 'object' },
    annotations: {
      readOnlyHint: changes === 'nothing',
      destructiveHint: changes === 'destroys',
      idempotentHint: changes === 'nothing',
      openWorldHint: usesNetwork,
    },
  };
}
