import * as z from 'zod';
import type { PackDetail, PackSummary } from '../../contract/pack.ts';
import { isOffered } from '../access/pack-offers.ts';
import { type Pack, toolNameOf } from '../packs/pack.ts';
import type { Memory, MemoryDeps } from './memory.ts';

export const packs = ({
  packs: { engine, sessions, skipped },
}: MemoryDeps): Pick<Memory, 'packs' | 'pack' | 'runPack' | 'endSession'> => ({
  async packs(caller) {
    const offered = engine.catalogue.all.filter((pack) => isOffered(caller, pack));
    return { packs: offered.map(summaryOf), ...(skipped.length > 0 && { skipped: [...skipped] }) };
  },

  async pack(_caller, { name }) {
    return detailOf(engine.catalogue.find(name));
  },

  runPack: (caller, input, context) => engine.run(caller, input, context),

  async endSession(caller, { id }) {
    return { session_id: id, deleted: await sessions.end(caller, id) };
  },
});

function summaryOf(pack: Pack): PackSummary {
  const { name, version, title, description, memory } = pack;
  const unavailable = pack.unavailable?.();
  return {
    name,
    version,
    title,
    description,
    tool: toolNameOf(pack),
    own: pack.own !== undefined,
    ...(memory?.cache === true && memory.ttl !== undefined && { cache_seconds: memory.ttl }),
    ...(unavailable !== undefined && { unavailable }),
  };
}

const detailOf = (pack: Pack): PackDetail => ({
  ...summaryOf(pack),
  input_schema: schemaOf(pack.input, 'input'),
  output_schema: schemaOf(pack.output, 'output'),
});

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Record<string, unknown> {
  const { $schema: _draft, ...rest } = z.toJSONSchema(schema, { io });
  return rest;
}
