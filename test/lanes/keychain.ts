import { calls } from './keychain-calls.ts';
import { credentials } from './keychain-credentials.ts';
import { databaseRecovery } from './keychain-database.ts';
import { environment, malformed, mismatch } from './keychain-keys.ts';
import * as life from './keychain-life.ts';
import * as states from './keychain-states.ts';

/** `keychain.ts <case>`. keychain.sh calls it on the right bus with a temporary home folder. */
const cases: Readonly<Record<string, () => Promise<void>>> = {
  'first-start': states.firstStart,
  locked: states.locked,
  'locked-first-start': states.lockedFirstStart,
  'no-keyring-yet': states.noKeyringYet,
  'silent-prompter': states.silentPrompter,
  'stopped-service': states.stoppedService,
  'no-service': states.noService,
  'no-bus': states.noBus,
  'bus-dies': states.busDies,
  'keyring-restarts': states.keyringRestarts,
  'bus-restarts': states.busRestarts,
  'next-start': states.startedNext,
  absent: states.absent,
  'no-library': states.noLibrary,
  'library-later': states.libraryLater,
  mismatch,
  malformed,
  environment,
  credentials,
  calls,
  rotation: life.rotation,
  'interrupted-rotation': life.interruptedRotation,
  recovery: life.recovery,
  'database-recovery': databaseRecovery,
  'another-machine': life.anotherMachine,
};

const [, , name = ''] = process.argv;
const run = cases[name];
if (!run) throw new Error(`Unknown case ${name}. Cases: ${Object.keys(cases).join(', ')}.`);
await run();
