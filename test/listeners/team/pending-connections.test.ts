import { describe, expect, test } from 'vitest';
import { CONNECTION_LIMITS } from '../../../src/listeners/limits.ts';
import { HandshakeRate } from '../../../src/listeners/team/pending-connections.ts';

const { handshakesAtOnce, handshakesPerSecond } = CONNECTION_LIMITS;

/** Returns how many of `count` handshakes are allowed at a time. */
const allowed = (rate: HandshakeRate, address: string, now: number, count = 1000): number =>
  Array.from({ length: count }, () => rate.allows(address, now)).filter(Boolean).length;

describe('the rate of TLS handshakes (R-TEAM-06)', () => {
  test('allows many at once after a pause, and then a few per second, for each address', () => {
    const rate = new HandshakeRate();
    expect(allowed(rate, '10.0.0.1', 0)).toBe(handshakesAtOnce);
    expect(allowed(rate, '10.0.0.2', 0)).toBe(handshakesAtOnce);
    expect(allowed(rate, '10.0.0.1', 1000)).toBe(handshakesPerSecond);
    expect(allowed(rate, '10.0.0.1', 2000)).toBe(handshakesPerSecond);
    expect(allowed(rate, '10.0.0.1', 3_600_000)).toBe(handshakesAtOnce);
  });

  test('is kept for a limited number of addresses, and forgets those that were idle the longest', () => {
    const rate = new HandshakeRate();
    allowed(rate, 'first', 0);
    allowed(rate, 'second', 0);
    for (let index = 0; index < 9_999; index += 1) rate.allows(`address ${index}`, 0);
    expect(allowed(rate, 'second', 0)).toBe(0);
    expect(allowed(rate, 'first', 0)).toBe(handshakesAtOnce);
  });
});
