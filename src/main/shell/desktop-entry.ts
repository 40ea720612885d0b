/** Returns the text of an XDG autostart file that runs a command at login. */
export function desktopEntry(command: readonly string[]): string {
  return `[Desktop Entry]
Type=Application
Name=Helmdeck Memory
Comment=One shared memory for all the AI agents on this machine
Exec=${command.map(quoted).join(' ')}
Terminal=false
X-GNOME-Autostart-enabled=true
`;
}

/** Quotes an argument as the Desktop Entry specification requires. Doubles each %, because a single % would start a field code. */
const quoted = (argument: string): string =>
  `"${argument.replaceAll(/["`$\\]/g, (char) => `\\${char}`)}"`.replaceAll('\\', '\\\\').replaceAll('%', '%%');
