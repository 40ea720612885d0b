/** A seeded pseudorandom generator. */
export interface Random {
  /** An integer from `least` to `most`, both included. */
  between(least: number, most: number): number;
  /** True in the given percentage of cases. */
  chance(percent: number): boolean;
  one<T>(things: readonly [T, ...T[]]): T;
}

export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  return {
    between,
    chance: (percent) => next() * 100 < percent,
    one: (things) => things[between(0, things.length - 1)] ?? things[0],
  };
}
