/** Shows the result of a pack as plain text, because the result is untrusted data. */
export function Output({ value }: { value: unknown }) {
  return <pre className="output">{typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'nothing')}</pre>;
}
