import type { SidecarFailureCode } from '../../contract/status.ts';
import { MINIMUM_VERSION } from './version.ts';

interface Told {
  readonly why: string;
  readonly remedy: string;
  /** Whether retrying cannot help, so that the owner must act. */
  readonly permanent: boolean;
}

/** Why embeddings are unavailable. Agents may read the messages, so they name no path. */
export class SidecarFailure extends Error implements Told {
  override readonly name = 'Trouble';
  readonly code: SidecarFailureCode;
  readonly why: string;
  readonly remedy: string;
  readonly permanent: boolean;
  /** The path concerned, for the owner only. */
  readonly path: string | undefined;

  constructor(trouble: SidecarFailureCode, { path, ...told }: Partial<Told> & { path?: string } = {}, options?: ErrorOptions) {
    const { why, remedy, permanent: lasting } = { ...TROUBLES[trouble], ...told };
    super(`${why} ${remedy}`, options);
    this.code = trouble;
    this.why = why;
    this.remedy = remedy;
    this.permanent = lasting;
    this.path = path;
  }
}

const TURN_ON = 'helmdeck-memory embeddings on';

/** The default messages. */
const TROUBLES: Readonly<Record<SidecarFailureCode, Told>> = {
  not_installed: {
    why: 'Ollama was not found on this machine.',
    remedy: `Install it, or set HELMDECK_OLLAMA to its path; then: ${TURN_ON}`,
    permanent: true,
  },
  unsafe: {
    why: 'Ollama was found in a place where other users could replace it.',
    remedy: `Make its file and the folders above it writable only for you (embeddings status shows the path), or set HELMDECK_OLLAMA to another one; then: ${TURN_ON}`,
    permanent: true,
  },
  too_old: {
    why: `This Ollama is older than ${MINIMUM_VERSION}, which has known vulnerabilities.`,
    remedy: `Update Ollama; then: ${TURN_ON}`,
    permanent: true,
  },
  port_taken: {
    why: 'Another program uses the port of our Ollama. Nothing was sent to it.',
    remedy: 'Another port is tried automatically. If this persists, look for a program that occupies every port.',
    permanent: false,
  },
  crashed: {
    why: 'Ollama exited unexpectedly.',
    remedy:
      'It is restarted automatically. If this persists, check its log (helmdeck-memory embeddings status) and the free memory.',
    permanent: false,
  },
  hanging: {
    why: 'Ollama does not respond.',
    remedy:
      'It is retried automatically. If this persists, check whether the machine has enough memory and processor time for the model.',
    permanent: false,
  },
  broken: {
    why: 'Ollama responds with errors.',
    remedy: 'It is retried automatically. If this persists, check its log (helmdeck-memory embeddings status) or update it.',
    permanent: false,
  },
  flooding: {
    why: 'Ollama flooded its log and was stopped.',
    remedy: `It is restarted automatically. If this persists, update Ollama, or turn embeddings off: helmdeck-memory embeddings off`,
    permanent: false,
  },
  wrong_dimension: {
    why: 'The model returned vectors of another length than before, or none, so they cannot be compared with indexed ones.',
    remedy: `Download the model again (helmdeck-memory embeddings pull), or set HELMDECK_EMBEDDINGS_MODEL to the right model; then: ${TURN_ON}`,
    permanent: true,
  },
  pull_failed: {
    why: 'The model could not be downloaded.',
    remedy: "Check the network connection and the model's name, then download it again: helmdeck-memory embeddings pull",
    permanent: true,
  },
  gone: {
    why: 'The Ollama that you chose is not running at its address.',
    remedy: 'Start it, or use a separate one that this program starts: helmdeck-memory embeddings on --own',
    permanent: false,
  },
  foreign: {
    why: 'The program at the address of the Ollama that you chose may belong to another user. Nothing was sent to it.',
    remedy:
      'Run Ollama as yourself or as its service, or use a separate one that this program starts: helmdeck-memory embeddings on --own',
    permanent: false,
  },
};
