/** A file of the XDG autostart specification that starts the program with these words. */
export function desktopEntry(words: readonly string[]): string {
  return `[Desktop Entry]
Type=Application
Name=Helmdeck Memory
Comment=One shared memory for all the AI agents on this machine
Exec=${words.map(quoted).join(' ')}
Terminal=false
X-GNOME-Autostart-enabled=true
`;
}

/** As the Desktop Entry specification quotes an argument, and then escapes a string. A % would name what is opened. */
const quoted = (word: string): string =>
  `"${word.replaceAll(/["`$\\]/g, (sign) => `\\${sign}`)}"`.replaceAll('\\', '\\\\').replaceAll('%', '%%');
