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
    remedy: `Install it, or say with HELMDECK_OLLAMA where it lies; then: ${TURN_ON}`,
    permanent: true,
  },
  unsafe: {
    why: 'Ollama was found where others than you and the system could put something else in its place.',
    remedy: `Let nobody else write its file and the folders above it (embeddings status names it), or say with HELMDECK_OLLAMA where another one lies; then: ${TURN_ON}`,
    permanent: true,
  },
  too_old: {
    why: `This Ollama is older than ${MINIMUM_VERSION}, and has holes that are known.`,
    remedy: `Update Ollama; then: ${TURN_ON}`,
    permanent: true,
  },
  port_taken: {
    why: 'Another program listens where our Ollama should, and was asked nothing.',
    remedy: 'Another port is tried by itself; if it stays, look for a program that takes every port.',
    permanent: false,
  },
  crashed: {
    why: 'Ollama ended by itself.',
    remedy: 'It is started again by itself; if it stays, look at its log (helmdeck-memory embeddings status) and at free memory.',
    permanent: false,
  },
  hanging: {
    why: 'Ollama does not answer.',
    remedy: 'It is tried again by itself; if it stays, see whether the machine has the memory and the time for the model.',
    permanent: false,
  },
  broken: {
    why: 'Ollama answers with failures of its own.',
    remedy: 'It is tried again by itself; if it stays, look at its log (helmdeck-memory embeddings status) or update it.',
    permanent: false,
  },
  flooding: {
    why: 'Ollama writes more into its log than anybody reads, and was ended.',
    remedy: `It is started again by itself; if it stays, update Ollama, or: helmdeck-memory embeddings off`,
    permanent: false,
  },
  wrong_dimension: {
    why: 'The model makes other vectors than before, or none; what was indexed does not fit them.',
    remedy: `Fetch the model again (helmdeck-memory embeddings pull), or set HELMDECK_EMBEDDINGS_MODEL to the one you mean; then: ${TURN_ON}`,
    permanent: true,
  },
  pull_failed: {
    why: 'The model could not be fetched.',
    remedy:
      'See that this machine reaches the network and that the model has this name, then fetch it again: helmdeck-memory embeddings pull',
    permanent: true,
  },
  gone: {
    why: 'The Ollama that you chose does not run where it is looked for.',
    remedy: 'Start it, or let us start one of our own: helmdeck-memory embeddings on --own',
    permanent: false,
  },
  foreign: {
    why: 'What listens where the Ollama that you chose should be is not known to be yours or the system’s, and was asked nothing.',
    remedy: 'Run Ollama as yourself or as its service, or let us start one of our own: helmdeck-memory embeddings on --own',
    permanent: false,
  },
};
