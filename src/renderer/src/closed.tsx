/** What a browser shows that came without a link, or with one that is no good any more. */
export function Closed() {
  return (
    <main className="closed">
      <h1>This window is closed</h1>
      <p>Links to it are good once, for five minutes. Get a new one from the program:</p>
      <code>npx helmdeck-memory window</code>
    </main>
  );
}
