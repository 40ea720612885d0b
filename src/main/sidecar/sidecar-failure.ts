import type { SidecarFailureCode } from '../../contract/status.ts';
import { MINIMUM_VERSION } from './version.ts';

interface Text {
  readonly why: string;
  readonly remedy: string;
  /** True if a retry cannot help, so that the owner must act. */
  readonly permanent: boolean;
}

/** The reason why embeddings are unavailable. Contains no path in its message, because agents can read the message. */
export class SidecarFailure extends Error implements Text {
  override readonly name = 'SidecarFailure';
  readonly code: SidecarFailureCode;
  readonly why: string;
  readonly remedy: string;
  readonly permanent: boolean;
  /** Path of the file that caused the failure. Shown only to the owner. */
  readonly path: string | undefined;

  constructor(code: SidecarFailureCode, { path, ...text }: Partial<Text> & { path?: string } = {}, options?: ErrorOptions) {
    const { why, remedy, permanent } = { ...TEXTS[code], ...text };
    super(`${why} ${remedy}`, options);
    this.code = code;
    this.why = why;
    this.remedy = remedy;
    this.permanent = permanent;
    this.path = path;
  }
}

const TURN_ON = 'helmdeck-memory embeddings on';

const TEXTS: Readonly<Record<SidecarFailureCode, Text>> = {
  not_installed: {
    why: 'Ollama was not found on this machine.',
    remedy: `Install Ollama, or set HELMDECK_OLLAMA to its path. Then run: ${TURN_ON}`,
    permanent: true,
  },
  unsafe: {
    why: 'Ollama was found in a folder where other users can replace it.',
    remedy: `Make sure that only you can write to Ollama's file and the folders above it (helmdeck-memory embeddings status shows the path), or set HELMDECK_OLLAMA to the path of another Ollama. Then run: ${TURN_ON}`,
    permanent: true,
  },
  too_old: {
    why: `This Ollama is older than ${MINIMUM_VERSION}, which has known vulnerabilities.`,
    remedy: `Update Ollama. Then run: ${TURN_ON}`,
    permanent: true,
  },
  port_taken: {
    why: 'Another program uses the port that was chosen for Ollama. No text was sent to that program.',
    remedy: 'Helmdeck Memory tries another port automatically. If this persists, look for a program that occupies every port.',
    permanent: false,
  },
  crashed: {
    why: 'Ollama exited unexpectedly.',
    remedy:
      "Ollama is restarted automatically. If this persists, check Ollama's log (helmdeck-memory embeddings status) and the computer's free memory.",
    permanent: false,
  },
  hanging: {
    why: 'Ollama does not respond.',
    remedy:
      'Helmdeck Memory tries again automatically. If this persists, check whether the machine has enough memory and processor time for the model.',
    permanent: false,
  },
  broken: {
    why: 'Ollama responds with errors.',
    remedy:
      "Helmdeck Memory tries again automatically. If this persists, check Ollama's log (helmdeck-memory embeddings status) or update Ollama.",
    permanent: false,
  },
  flooding: {
    why: 'Ollama was stopped, because it wrote far too many log lines.',
    remedy: `Ollama is restarted automatically. If this persists, update Ollama, or turn embeddings off: helmdeck-memory embeddings off`,
    permanent: false,
  },
  wrong_dimension: {
    why: 'The model returned no vectors, or vectors of a different length than before, so they cannot be compared with stored vectors.',
    remedy: `Download the model again (helmdeck-memory embeddings pull), or set HELMDECK_EMBEDDINGS_MODEL to the right model. Then run: ${TURN_ON}`,
    permanent: true,
  },
  pull_failed: {
    why: 'The model could not be downloaded.',
    remedy: "Check the network connection and the model's name, then download the model again: helmdeck-memory embeddings pull",
    permanent: true,
  },
  gone: {
    why: 'The Ollama that you chose is not running at its address.',
    remedy: 'Start that Ollama, or let Helmdeck Memory start a separate one: helmdeck-memory embeddings on --own',
    permanent: false,
  },
  foreign: {
    why: 'The program at the address of the Ollama that you chose may belong to another user. No text was sent to that program.',
    remedy:
      'Run Ollama under your own user account or as the Ollama service, or let Helmdeck Memory start a separate Ollama: helmdeck-memory embeddings on --own',
    permanent: false,
  },
};
