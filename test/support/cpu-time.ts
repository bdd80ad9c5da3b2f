/**
 * The CPU time of this thread so far, ms: what a computation takes however busy the machine is, where the clock would
 * count the work of others as well.
 */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
