import { MIB } from '../../../contract/units.ts';

/** Formats a number of bytes in KiB or MiB. */
export const sizeOf = (bytes: number): string =>
  bytes < MIB
    ? `${Math.ceil(bytes / 1024).toLocaleString()} KiB`
    : `${(bytes / MIB).toLocaleString(undefined, { maximumFractionDigits: 1 })} MiB`;
