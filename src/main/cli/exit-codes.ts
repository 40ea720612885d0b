import type { FailureCode } from '../../contract/failure.ts';

/** Stable exit codes for scripts: one code for each kind of reaction. */
export const exits = {
  done: { code: 0, description: 'Success.' },
  failed: {
    code: 1,
    description: 'Failed or cancelled: the input is invalid, a confirmation was declined, or damage was found.',
  },
  usage: { code: 2, description: 'The command line is invalid; nothing was attempted.' },
  notFound: { code: 3, description: 'The fact, token, memory or recovery key does not exist.' },
  key: { code: 4, description: 'The key of the memory is unavailable, or does not exist yet.' },
  unavailable: {
    code: 5,
    description: 'The memory or the program is unavailable: not running, busy, closed, or its file cannot be used.',
  },
  quota: { code: 6, description: 'A quota or the write rate limit is reached.' },
  full: { code: 7, description: 'The disk is full.' },
  config: { code: 78, description: 'A setting is invalid, or names a folder or file that cannot be used.' },
  noNode: { code: 70, description: 'No suitable Node was found, or the installation is incomplete.' },
  interrupted: { code: 130, description: 'Interrupted with Ctrl+C (SIGINT); 143 for SIGTERM, 129 for SIGHUP.' },
} as const;

const byFailure: Partial<Record<FailureCode, number>> = {
  not_found: exits.notFound.code,
  key_unavailable: exits.key.code,
  invalid_config: exits.config.code,
  unavailable: exits.unavailable.code,
  store_unavailable: exits.unavailable.code,
  embeddings_unavailable: exits.unavailable.code,
  session_unavailable: exits.unavailable.code,
  timeout: exits.unavailable.code,
  quota_exceeded: exits.quota.code,
  rate_limited: exits.quota.code,
  disk_full: exits.full.code,
};

export const exitCodeOf = (code: FailureCode): number => byFailure[code] ?? exits.failed.code;
