import { DEFAULT_ADDRESS } from '../../../contract/limits.ts';
import { useAsked } from '../memory-context.tsx';
import { Copyable } from '../ui/copyable.tsx';

/** How the programs that most people use are connected, in lines to be pasted into a terminal. */
export function HowToConnect() {
  const { data } = useAsked('settings', {});
  const url = `http://${data?.address ?? DEFAULT_ADDRESS}/api/v1/mcp`;
  return (
    <>
      {BY_HAND.map(({ name, lines }) => (
        <div key={name}>
          <h3>{name}</h3>
          <Copyable text={lines.join('\n')} name={`the lines for ${name}`} />
        </div>
      ))}
      <h3>Any other</h3>
      <p>
        Over stdio <code>helmdeck-memory mcp --client NAME</code>, after <code>helmdeck-memory token mint NAME --keep</code>; or
        over HTTP with a token as <code>Authorization: Bearer</code> at
      </p>
      <Copyable text={url} name="the address" />
    </>
  );
}

/** As in the README. The bridge takes the token from a private file: it stands on no command line, and in no environment. */
const BY_HAND = [
  {
    name: 'Claude Code',
    lines: [
      'helmdeck-memory token mint claude-code --keep',
      'claude mcp add --scope user helmdeck -- helmdeck-memory mcp --client claude-code',
    ],
  },
  {
    name: 'Codex',
    lines: ['helmdeck-memory token mint codex --keep', 'codex mcp add helmdeck -- helmdeck-memory mcp --client codex'],
  },
  {
    name: 'Gemini CLI',
    lines: [
      'helmdeck-memory token mint gemini-cli --keep',
      'gemini mcp add --scope user helmdeck helmdeck-memory -- mcp --client gemini-cli',
    ],
  },
];
