import type { FailureCode } from '../../contract/failure.ts';

/** What a script may rely on. One number is one thing to do about it. */
export const exits = {
  done: { code: 0, says: 'It was done.' },
  failed: {
    code: 1,
    says: 'It was refused, cancelled or failed: the input is wrong, a question was answered no, or damage was found.',
  },
  usage: { code: 2, says: 'The command line is wrong; nothing was tried.' },
  notFound: { code: 3, says: 'There is no such fact, token, memory or recovery key.' },
  key: { code: 4, says: 'The key of the memory is not at hand, or there is none yet.' },
  unavailable: {
    code: 5,
    says: 'The program or the memory is not available: not running, busy, closed, or its file cannot be used.',
  },
  quota: { code: 6, says: 'A quota or a limit on writes is reached.' },
  full: { code: 7, says: 'The disk is full.' },
  config: { code: 78, says: 'A setting is wrong, or the folder or file that it names.' },
  noNode: { code: 70, says: 'No Node was found that can run this, or the installation is not complete.' },
  interrupted: { code: 130, says: 'It was interrupted with Ctrl+C (SIGINT); 143 if it was ended with SIGTERM, 129 with SIGHUP.' },
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
