import { openStore } from '../../../src/core/store/open-store.ts';
import { withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { promisesOfAStore } from './store.contract.ts';
import { promisesOfVectors } from './vectors.contract.ts';

promisesOfAStore('SQLite', (clock, quota) => openStore({ folder: tempFolder(), clock, sources: withKey(), quota }));
promisesOfVectors('SQLite', (clock, quota) => openStore({ folder: tempFolder(), clock, sources: withKey(), quota }));
