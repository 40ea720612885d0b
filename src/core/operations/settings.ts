import type { Memory, MemoryDeps } from './memory.ts';

export const settings = ({ store, settings: owner, program }: MemoryDeps): Pick<Memory, 'settings' | 'changeSetting'> => ({
  async settings({ subject }) {
    const { used, most } = await store.usage(subject);
    return {
      ...owner.snapshot(),
      ...(program.updates && { updates: program.updates.host }),
      quota: {
        facts: { used: used.facts, most: most.facts },
        bytes: { used: used.bytes, most: most.bytes },
      },
    };
  },

  async changeSetting(_caller, { name, value }) {
    return owner.change(name, value);
  },
});
