/** How often a test repeats something: a tenth of `all` in `npm test`, and `all` in `npm run lane:soak`. */
export const runs = (all: number): number => (process.env['HELMDECK_TEST_RUNS'] === 'all' ? all : Math.ceil(all / 10));
