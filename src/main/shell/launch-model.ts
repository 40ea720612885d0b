import { utilityProcess } from 'electron';
import { lowerPriority } from '../meaning/launch-model.ts';
import type { FromModel, LaunchModel } from '../meaning/model-messages.ts';

/** Starts the bundled model in a process of Electron, because a packaged app cannot start Node. */
export const launchWithElectron: LaunchModel = (path, _files, on) => {
  const child = utilityProcess.fork(path, [], { env: {}, stdio: 'ignore', serviceName: 'Helmdeck Memory model' });
  child.on('message', (message: FromModel) => on.message(message));
  child.once('exit', on.exit);
  child.once('spawn', () => lowerPriority(child.pid));
  return {
    send: child.postMessage.bind(child),
    kill: () => void child.kill(),
  };
};
