/** What `helmdeck-memory pack new` writes: a pack that works as it stands, for its author to change. */
export const template = (name: string): string => `import { definePack, z } from 'helmdeck-memory/pack';

// This file is the pack ${name}. Try it:  helmdeck-memory pack test ${name} --input '{"who": "Ada"}' --times 2

export default definePack({
  // Answers kept from another version are never given for this one's.
  version: '1.0.0',
  title: 'Greet somebody',
  // Read by a model: say when to use it, and when not.
  description: 'Greets a person by name and says how often it has. Use it to see whether packs work here.',

  // What it is asked. The texts of describe() are read by a model too.
  input: z.object({
    who: z.string().min(1).max(100).describe('The name of the person.'),
  }),

  // What it answers; anything else is an error, and is not handed on.
  output: z.object({
    greeting: z.string(),
    times: z.int(),
  }),

  // It has a memory, and keeps there for a day what it does not give another lifetime. Leave it out where nothing is to be remembered.
  // With cache: true the same question would be answered again without a run: for answers that depend on the input alone.
  memory: { ttl: 86_400 },

  // It may run for so many seconds.
  seconds: 10,

  async handler({ input, memory, progress, log }) {
    progress(0, 2, 'Looking up how often');
    const before = await memory.recall(\`greeted/\${input.who}\`);
    const times = (before?.value ?? 0) + 1;
    progress(1, 2, 'Remembering it');
    await memory.store(\`greeted/\${input.who}\`, times);
    log(\`\${times} so far\`);
    return { greeting: \`Hello, \${input.who}.\`, times };
  },
});
`;
