import { DEFAULT_ADDRESS } from '../../../contract/limits.ts';
import { useAsked } from '../memory-context.tsx';
import { Copyable } from '../ui/copyable.tsx';

/** How the programs that most people use are connected, in lines to be pasted into a terminal. */
export function HowToConnect() {
  const { data } = useAsked('settings', {});
  const command = data?.command ?? 'helmdeck-memory';
  const url = `http://${data?.address ?? DEFAULT_ADDRESS}/api/v1/mcp`;
  return (
    <>
      {byHand(command).map(({ name, lines }) => (
        <div key={name}>
          <h3>{name}</h3>
          <Copyable text={lines.join('\n')} name={`the lines for ${name}`} />
        </div>
      ))}
      <h3>Any other</h3>
      <p>
        Over stdio <code>{command} mcp --client NAME</code>, after <code>{command} token mint NAME --keep</code>; or over HTTP
        with a token as <code>Authorization: Bearer</code> at
      </p>
      <Copyable text={url} name="the address" />
    </>
  );
}

/** As in the README. The bridge takes the token from a private file: it stands on no command line, and in no environment. */
const byHand = (command: string): readonly { readonly name: string; readonly lines: readonly string[] }[] => [
  {
    name: 'Claude Code',
    lines: [
      `${command} token mint claude-code --keep`,
      `claude mcp add --scope user helmdeck -- ${command} mcp --client claude-code`,
    ],
  },
  {
    name: 'Codex',
    lines: [`${command} token mint codex --keep`, `codex mcp add helmdeck -- ${command} mcp --client codex`],
  },
  {
    name: 'Gemini CLI',
    lines: [`${command} token mint gemini-cli --keep`, geminiLine(command)],
  },
];

/** Gemini takes the program apart from its arguments. */
function geminiLine(command: string): string {
  const [program, ...args] = command.split(' ');
  return `gemini mcp add --scope user helmdeck ${program} -- ${[...args, 'mcp --client gemini-cli'].join(' ')}`;
}
