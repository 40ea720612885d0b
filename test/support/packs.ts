import * as z from 'zod';
import { definePack, type ExecutionContext, type Pack } from '../../src/core/packs/pack.ts';

/** A pack with the given handler. */
export const aPack = (handler: (context: ExecutionContext<{ what: string }>) => unknown, over: Partial<Pack> = {}): Pack => ({
  ...definePack({
    name: 'test.echo',
    version: '1.0.0',
    title: 'Echo',
    description: 'Says what it hears.',
    input: z.strictObject({ what: z.string().default('nothing') }),
    output: z.looseObject({ said: z.string() }),
    handler: async (context) => (await handler(context)) as { said: string },
  }),
  ...over,
});

/** A fake token in GitHub's format. */
export const CREDENTIAL = `ghp_${['Zk3', 'Vq8tLw', 'X2pRm', '7NcYh5', 'BdJf9', 'Gs4AeU', 'o1KiT', '6'].join('')}`;
