import { DEFAULT_ADDRESS } from '../../../contract/names.ts';
import { useOperation } from '../memory-context.tsx';
import { Copyable } from '../ui/copyable.tsx';

export function HowToConnect() {
  const { data } = useOperation('settings', {});
  const command = data?.command ?? 'helmdeck-memory';
  const url = `http://${data?.address ?? DEFAULT_ADDRESS}/api/v1/mcp`;
  return (
    <>
      {instructions(command).map(({ name, lines }) => (
        <div key={name}>
          <h3>{name}</h3>
          <Copyable text={lines.join('\n')} name={`the lines for ${name}`} />
        </div>
      ))}
      <h3>Other agents</h3>
      <p>
        Over stdio: run <code>{command} token mint NAME --keep</code>, then use <code>{command} mcp --client NAME</code> as the
        command of the server. Over HTTP: send a token as <code>Authorization: Bearer</code> to
      </p>
      <Copyable text={url} name="the address" />
    </>
  );
}

/**
 * The same commands as in docs/connect.md. The `mcp` command reads the token from a private file, so that no command line or
 * environment variable contains the token.
 */
const instructions = (command: string): readonly { readonly name: string; readonly lines: readonly string[] }[] => [
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
    lines: [`${command} token mint gemini-cli --keep`, geminiCommand(command)],
  },
];

/** Inserts `--` between the program and its arguments, because Gemini CLI requires `--`. */
function geminiCommand(command: string): string {
  const [program, ...args] = command.split(' ');
  return `gemini mcp add --scope user helmdeck ${program} -- ${[...args, 'mcp --client gemini-cli'].join(' ')}`;
}
