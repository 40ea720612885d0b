/** A moment as it goes over every wire: RFC 3339 in UTC. */
export const time = (ms: number): string => new Date(ms).toISOString();
