import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { formatMinute } from '../times.ts';

const name = { description: 'Name of the credential, as shown by `credential list`, such as github.' };

/** Maximum bytes of the input. Longer than any real credential. */
const MAX_BYTES = 8192;

export const credentialSet = command({
  name: 'credential set',
  description: 'Stores a secret for a service, such as a GitHub token, in the keychain.',
  arguments: { name },
  details: [
    'Type the secret at the hidden prompt, or pipe it to standard input. The secret is never an argument, because other users can see command lines. A new secret replaces the old secret, and deletes pack results that were cached with the old secret.',
    'For GitHub, a fine-grained token with read access to issues is enough. Without a keychain, set HELMDECK_GITHUB_TOKEN_FILE to the path of a file that contains the token.',
  ],
  examples: ['credential set github', 'gh auth token | helmdeck-memory credential set github'],
  async run({ arguments: typed }, context) {
    const answer = await context.call('setCredential', { name: typed.name, secret: await secretFrom(context) });
    await context.printResult(answer, () => [`The credential ${answer.name} is stored in the OS keychain.`]);
  },
});

export const credentialList = command({
  name: 'credential list',
  description: 'Lists the credentials of packs and where they are stored, without the secrets.',
  async run(_typed, context) {
    const answer = await context.call('credentials', {});
    await context.printTable(
      answer,
      answer.credentials.map(({ name: one, kept_in, set_at, packs }) => [
        one,
        kept_in === undefined ? 'not set' : `in the ${kept_in}${set_at === undefined ? '' : ` since ${formatMinute(set_at)}`}`,
        `for ${packs.join(', ')}`,
      ]),
    );
  },
});

export const credentialDrop = command({
  name: 'credential drop',
  description: 'Deletes a credential from the keychain, and pack results cached with it.',
  arguments: { name },
  details: ['Also revoke the credential at the service, because every copy of the credential still works.'],
  async run({ arguments: typed }, context) {
    const answer = await context.call('dropCredential', { name: typed.name });
    await context.printResult(answer, () => [`The credential ${answer.name} was deleted.`]);
  },
});

async function secretFrom({ terminal }: CommandContext): Promise<string> {
  if (terminal.inputIsTerminal) return (await terminal.askHidden('Secret (hidden): ')).trim();
  return (await terminal.readText(MAX_BYTES)).trim();
}
