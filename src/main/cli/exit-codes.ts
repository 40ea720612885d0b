import type { FailureCode } from '../../contract/failure.ts';

/** Exit codes. Never change a number, because scripts depend on the numbers. */
export const exits = {
  done: { code: 0, description: 'Success.' },
  failed: {
    code: 1,
    description:
      'Failed or cancelled: the input is invalid, such as an unusable backup, a confirmation was declined, or damage was found.',
  },
  usage: { code: 2, description: 'The command line is invalid; nothing was attempted.' },
  notFound: { code: 3, description: 'The named item, such as a fact, a token, a pack or a backup, does not exist.' },
  key: { code: 4, description: "The memory's key or the OS keychain is unavailable, or no key has been created." },
  unavailable: {
    code: 5,
    description: 'The program, the memory file or embeddings are unavailable or busy, or did not respond in time.',
  },
  quota: { code: 6, description: 'A quota or the limit of writes per minute was reached.' },
  full: { code: 7, description: 'The disk is full.' },
  noNode: { code: 70, description: 'No suitable Node was found, or the installation is incomplete.' },
  config: {
    code: 78,
    description:
      'A setting is invalid, or a folder or file of the program cannot be used, such as a secret that other users can read.',
  },
  interrupted: {
    code: 130,
    description: 'Interrupted with Ctrl+C (SIGINT). The code is 143 after SIGTERM and 129 after SIGHUP.',
  },
} as const;

const byFailure: Partial<Record<FailureCode, number>> = {
  not_found: exits.notFound.code,
  key_unavailable: exits.key.code,
  invalid_config: exits.config.code,
  unavailable: exits.unavailable.code,
  store_unavailable: exits.unavailable.code,
  embeddings_unavailable: exits.unavailable.code,
  session_unavailable: exits.unavailable.code,
  qmd_unavailable: exits.unavailable.code,
  timeout: exits.unavailable.code,
  quota_exceeded: exits.quota.code,
  rate_limited: exits.quota.code,
  disk_full: exits.full.code,
};

export const exitCodeOf = (code: FailureCode): number => byFailure[code] ?? exits.failed.code;
