/** What it costs this thread to do it, in milliseconds: what else the machine does meanwhile does not count. */
export function workOf(run: () => unknown): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
