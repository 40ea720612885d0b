/** Returns the file that `helmdeck-memory pack new` writes: a working pack that its author can change. */
export const template = (name: string): string => `import { definePack, z } from 'helmdeck-memory/pack';

// This file contains the pack ${name}. Test it with:  helmdeck-memory pack test ${name} --input '{"who": "Ada"}' --times 2

export default definePack({
  // Change the version when the pack changes: a cached output is returned only for the same version.
  version: '1.0.0',
  title: 'Greet a person',
  // A model reads this text. Say when to use the pack and when not to use it.
  description: 'Greets a person by name and counts the greetings. Use it to check that packs work here.',

  // The schema of the input. A model also reads the texts in describe().
  input: z.object({
    who: z.string().min(1).max(100).describe('The name of the person.'),
  }),

  // The schema of the output. If the handler returns anything else, the run fails.
  output: z.object({
    greeting: z.string(),
    times: z.int(),
  }),

  // Gives the pack a memory. By default, its entries expire after a day. Remove this field if the pack stores nothing. With
  // cache: true, equal inputs return the last output without a run. Use that only if the output depends on the input alone.
  memory: { ttl: 86_400 },

  // Time limit of a run in seconds.
  seconds: 10,

  async handler({ input, memory, progress, log }) {
    progress(0, 2, 'Looking up the count');
    const before = await memory.recall(\`greeted/\${input.who}\`);
    const times = (before?.value ?? 0) + 1;
    progress(1, 2, 'Storing the count');
    await memory.store(\`greeted/\${input.who}\`, times);
    log(\`\${times} so far\`);
    return { greeting: \`Hello, \${input.who}.\`, times };
  },
});
`;
