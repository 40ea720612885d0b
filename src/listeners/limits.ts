const KIB = 1024;
const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** What a connection may cost us (R-HTTP-06, R-HTTP-07). Times are milliseconds. */
export const CONNECTION_LIMITS = {
  /** From the first byte awaited to the last byte of the headers. */
  headersMs: 8 * SECOND,
  /** From the headers to the last byte of a body. */
  bodyMs: 7 * SECOND,
  /** Within this an import must have brought a line, or `progressBytes`, and a reader must have taken something. */
  progressMs: 7 * SECOND,
  progressBytes: 16 * KIB,
  /** How long one import may keep us waiting for its lines in all; without this a line now and then would hold a stream for ever. */
  importWaitMs: 10 * MINUTE,
  /** Between two requests. Node adds a second. */
  idleMs: 7 * SECOND,
  checkMs: SECOND,
  /** The longest token takes half of it. */
  headerBytes: 16 * KIB,
  bodyBytes: 1024 * KIB,
  /** Of all bodies that are being read; whoever sends the most of them is refused first. */
  bodyTotalBytes: 64 * 1024 * KIB,
  /** Of all answers that were not taken yet; whoever leaves the most of them loses a connection first. */
  unreadTotalBytes: 64 * 1024 * KIB,
  jsonDepth: 64,
  /** Whoever has the most of them gives way to the next. */
  connections: 1000,
  /** Questions one connection may have asked before they are answered. */
  pendingRequests: 64,
  /** Streams, exports and imports one subject may have open. */
  streams: 64,
  /** What a stream may hold for a reader who does not read. */
  unreadStreamBytes: 64 * KIB,
  keepAliveMs: 15 * SECOND,
  /** How long the rest of a refused body is thrown away, so that whoever sends it comes to read the answer. */
  lingerMs: 2 * SECOND,
  /** At most so many bytes of it. After that nothing is read, and the sender waits. */
  lingerBytes: 4 * 1024 * KIB,
  /** What requests under way get to come to their end when the program ends. */
  closingMs: 2 * SECOND,
} as const;
