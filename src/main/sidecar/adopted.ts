import type { Clock } from '../../core/time/clock.ts';
import { OllamaClient } from './ollama-client.ts';
import { isOwnedByTrustedUser } from './port-owner.ts';
import { SidecarFailure } from './sidecar-failure.ts';

/** Connects to an Ollama that is already running. The owner chose it; the system confirms which user runs it. */
export function createAdoptedClient(url: URL, clock: Clock): OllamaClient {
  const host = url.hostname === '[::1]' ? '::1' : '127.0.0.1';
  const port = Number(url.port || 80);
  const prove = async (): Promise<void> => {
    if (!(await isOwnedByTrustedUser(port))) throw new SidecarFailure('foreign');
  };
  return new OllamaClient({ host, port, clock, prove });
}
