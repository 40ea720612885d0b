/** What a pack answered, as it is: quoted data. */
export function Output({ value }: { value: unknown }) {
  return <pre className="output">{typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'nothing')}</pre>;
}
