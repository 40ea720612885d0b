/** What `helmdeck-memory pack new` writes: a working pack for its author to change. */
export const template = (name: string): string => `import { definePack, z } from 'helmdeck-memory/pack';

// This file is the pack ${name}. Try it:  helmdeck-memory pack test ${name} --input '{"who": "Ada"}' --times 2

export default definePack({
  // Cached outputs are only returned for the same version.
  version: '1.0.0',
  title: 'Greet a person',
  // Read by a model: say when to use the pack, and when not.
  description: 'Greets a person by name and counts the greetings. Use it to check that packs work here.',

  // The input. A model also reads the texts of describe().
  input: z.object({
    who: z.string().min(1).max(100).describe('The name of the person.'),
  }),

  // The output. Anything else is an error and is not returned.
  output: z.object({
    greeting: z.string(),
    times: z.int(),
  }),

  // Gives the pack a memory whose entries expire after a day by default. Leave it out if the pack stores nothing. With cache:
  // true, equal inputs return the last output without a run; use it if the output depends on the input alone.
  memory: { ttl: 86_400 },

  // Time limit in seconds.
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
