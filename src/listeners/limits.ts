const KIB = 1024;
const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** Limits of one connection, and of all connections together (R-HTTP-06, R-HTTP-07). Times are in milliseconds. */
export const CONNECTION_LIMITS = {
  headersMs: 8 * SECOND,
  /** Time limit for receiving the request body, after the headers. */
  bodyMs: 7 * SECOND,
  /**
   * Time within which an import must receive a line or `progressBytes`, and within which a client must read part of its response.
   */
  progressMs: 7 * SECOND,
  progressBytes: 16 * KIB,
  /**
   * Total time that one import can wait for lines. Without this limit, a client that rarely sends a line could import forever.
   */
  importWaitMs: 10 * MINUTE,
  /** Maximum idle time between two requests on a connection. Node waits one second longer than this. */
  idleMs: 7 * SECOND,
  /** Interval at which Node checks for slow connections. */
  checkMs: SECOND,
  /** Maximum size of all request headers together: twice the length of the longest token. */
  headerBytes: 16 * KIB,
  bodyBytes: 1024 * KIB,
  /**
   * Maximum bytes of all request bodies being received. Above it, the largest body of the subject that sends the most bytes is
   * refused.
   */
  bodyTotalBytes: 64 * 1024 * KIB,
  /** Maximum bytes of all unread responses. Above this limit, a connection of the subject with the most unread data is closed. */
  unreadTotalBytes: 64 * 1024 * KIB,
  jsonDepth: 64,
  /** Maximum number of open connections. Above this limit, a connection of the subject with the most connections is closed. */
  connections: 1000,
  /** Maximum number of connections from other machines whose TLS handshake is not finished. */
  handshakes: 512,
  /**
   * Maximum number of connections of one address whose TLS handshake is not finished, and of those that have not sent a valid
   * token yet. Above it, the oldest of them is closed. High enough for an office that shares one address.
   */
  anonymousPerAddress: 64,
  /**
   * Maximum number of TLS handshakes of one address per second, and at once after a pause. A handshake takes about a millisecond
   * of the only thread, so without this limit one machine could keep the server from answering.
   */
  handshakesPerSecond: 32,
  handshakesAtOnce: 128,
  /** Maximum number of unanswered requests per connection. */
  pendingRequests: 64,
  /** Maximum number of open streams, exports and imports per subject. */
  streams: 64,
  unreadStreamBytes: 64 * KIB,
  /** Interval between two keep-alive comments on an event stream. */
  keepAliveMs: 15 * SECOND,
  /** How long the rest of a refused body is read and discarded, so that the client can read the error response. */
  lingerMs: 2 * SECOND,
  /** Maximum bytes of a refused body that are read and discarded. */
  lingerBytes: 4 * 1024 * KIB,
  /** How long the server waits for pending requests when the program exits. */
  closingMs: 2 * SECOND,
} as const;
