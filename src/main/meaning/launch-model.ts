import { constants, setPriority } from 'node:os';
import { dirname, parse } from 'node:path';
import { nodeEnvironment } from '../own-packs/runtime.ts';
import type { FromModel, LaunchModel } from './model-messages.ts';

/**
 * Starts the model in a Node process, with read access to the files of the model only. Its low priority keeps background work from
 * delaying other programs.
 */
export const launchWithNode: LaunchModel = (path, files, on) => {
  // Loaded on demand, so that the program starts faster.
  const { spawn } = process.getBuiltinModule('node:child_process');
  const readable = [path, ...Object.values(files).map(({ path: file }) => dirname(file))];
  const child = spawn(
    process.execPath,
    [
      '--permission',
      ...[...new Set(readable)].map((file) => `--allow-fs-read=${file}`),
      '--no-addons',
      '--disable-sigusr1',
      '--no-warnings',
      path,
    ],
    {
      env: nodeEnvironment(),
      cwd: parse(process.execPath).root,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      serialization: 'advanced',
      windowsHide: true,
    },
  );
  child.on('message', (message) => on.message(message as FromModel));
  child.once('exit', on.exit);
  child.once('error', on.exit);
  lowerPriority(child.pid);
  return {
    // Ignore errors: the process has exited, which `exit` reports.
    send: (message) => void (child.connected && child.send(message, () => undefined)),
    kill: () => void child.kill('SIGKILL'),
  };
};

export function lowerPriority(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Ignore the error: the process has exited, or the system does not allow it. The model then has normal priority.
  }
}
