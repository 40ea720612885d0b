import { RamStore } from '../../../src/core/store/ram-store.ts';
import { promisesOfAStore } from './store.contract.ts';

promisesOfAStore('RAM', (clock, quota) => Promise.resolve(new RamStore(clock, quota)), { isDurable: false });
