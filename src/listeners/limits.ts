const KIB = 1024;
const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** Limits per connection and for all of them together (R-HTTP-06, R-HTTP-07). Times are in milliseconds. */
export const CONNECTION_LIMITS = {
  headersMs: 8 * SECOND,
  /** Time limit from the end of the headers to the end of the body. */
  bodyMs: 7 * SECOND,
  /** Within this time an import must send a line or `progressBytes`, and a client must read part of its response. */
  progressMs: 7 * SECOND,
  progressBytes: 16 * KIB,
  /** Total time that one import may spend waiting for lines. Without it, an occasional line would hold a stream forever. */
  importWaitMs: 10 * MINUTE,
  /** Idle time between two requests. Node adds a second. */
  idleMs: 7 * SECOND,
  /** How often Node checks for slow connections. */
  checkMs: SECOND,
  /** Size of all request headers: twice the length of the longest token. */
  headerBytes: 16 * KIB,
  bodyBytes: 1024 * KIB,
  /** Bytes of all bodies being received. Above this, the subject that is sending the most is refused. */
  bodyTotalBytes: 64 * 1024 * KIB,
  /** Bytes of all unread responses. Above this, the subject with the most unread data loses a connection. */
  unreadTotalBytes: 64 * 1024 * KIB,
  jsonDepth: 64,
  /** Open connections. Above this, the subject with the most connections loses one. */
  connections: 1000,
  /** Unanswered requests per connection. */
  pendingRequests: 64,
  /** Open streams, exports and imports per subject. */
  streams: 64,
  /** Unread bytes per event stream. */
  unreadStreamBytes: 64 * KIB,
  keepAliveMs: 15 * SECOND,
  /** How long the rest of a refused body is discarded, so that the client gets to read the response. */
  lingerMs: 2 * SECOND,
  /** How much of a refused body is discarded. After that, nothing more is read. */
  lingerBytes: 4 * 1024 * KIB,
  /** How long pending requests may take when the program stops. */
  closingMs: 2 * SECOND,
} as const;
