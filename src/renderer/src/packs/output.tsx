/** The result of a pack. It is untrusted data and is shown as plain text. */
export function Output({ value }: { value: unknown }) {
  return <pre className="output">{typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'nothing')}</pre>;
}
