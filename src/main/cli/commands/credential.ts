import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { columns } from '../layout.ts';
import { formatMinute } from '../times.ts';

const name = { says: 'Which one, by the name in the list, such as github.' };

/** More than any has. */
const MOST_READ = 8192;

export const credentialSet = command({
  name: 'credential set',
  says: 'Keeps a secret for a service outside, such as a GitHub token, in the keychain.',
  arguments: { name },
  more: [
    'It is asked for without being shown, or read from standard input; it is never part of the command line, where others could see it. An earlier one is replaced, and what was kept with it is forgotten at once.',
    'For GitHub a fine-grained token that may read issues is enough. Where there is no keychain, HELMDECK_GITHUB_TOKEN_FILE names a file with the token.',
  ],
  examples: ['credential set github', 'gh auth token | helmdeck-memory credential set github'],
  async run({ arguments: typed }, desk) {
    const answer = await (await desk.memory()).call('setCredential', { name: typed.name, secret: await secretFrom(desk) });
    await desk.printResult(answer, () => [`The credential ${answer.name} is kept in the OS keychain.`]);
  },
});

export const credentialList = command({
  name: 'credential list',
  says: 'Lists the credentials that packs can use, and where they are; never a secret.',
  async run(_typed, desk) {
    const answer = await (await desk.memory()).call('credentials', {});
    await desk.printResult(answer, () =>
      columns(
        answer.credentials.map(({ name: one, kept_in, set_at, packs }) => [
          one,
          kept_in === undefined ? 'not set' : `in the ${kept_in}${set_at === undefined ? '' : ` since ${formatMinute(set_at)}`}`,
          `for ${packs.join(', ')}`,
        ]),
      ),
    );
  },
});

export const credentialDrop = command({
  name: 'credential drop',
  says: 'Takes a credential out of the keychain, and forgets what was kept with it.',
  arguments: { name },
  more: ['Revoke it at its service too: whoever has a copy of it can use it until then.'],
  async run({ arguments: typed }, desk) {
    const answer = await (await desk.memory()).call('dropCredential', { name: typed.name });
    await desk.printResult(answer, () => [`The credential ${answer.name} is gone.`]);
  },
});

async function secretFrom({ terminal }: CommandContext): Promise<string> {
  if (terminal.inputIsTerminal) return (await terminal.askHidden('Secret (it is not shown): ')).trim();
  return (await terminal.read(MOST_READ))?.toString().trim() ?? '';
}
