import type { Clock } from '../../core/time/clock.ts';
import { OllamaClient } from './ollama-client.ts';
import { isOwnedByTrustedUser } from './port-owner.ts';
import { SidecarFailure } from './sidecar-failure.ts';

/** An Ollama that runs already. What it is its owner vouches for; whose it is, the system. */
export function createAdoptedClient(url: URL, clock: Clock): OllamaClient {
  const host = url.hostname === '[::1]' ? '::1' : '127.0.0.1';
  const port = Number(url.port || 80);
  const prove = async (): Promise<void> => {
    if (!(await isOwnedByTrustedUser(port))) throw new SidecarFailure('foreign');
  };
  return new OllamaClient({ host, port, clock, prove });
}
