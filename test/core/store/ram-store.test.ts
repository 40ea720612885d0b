import { RamStore } from '../../../src/core/store/ram-store.ts';
import { promisesOfAStore } from './store.contract.ts';
import { promisesOfVectors } from './vectors.contract.ts';

promisesOfAStore('RAM', (clock, quota) => Promise.resolve(new RamStore(clock, quota)), { isDurable: false });
promisesOfVectors('RAM', (clock, quota) => Promise.resolve(new RamStore(clock, quota)));
