import { workerNames, type WorkerName } from './worker-name.ts'

/**
 * How many threads of the daemon carry the calls of so many workers, beside its main thread: as many as there are workers or
 * as are asked for, if fewer. None where one would do, which is then the main thread.
 */
export function carriersFor(workers: number, asked = workers): number {
  const threads = Math.min(workers, asked)
  return threads === 1 ? 0 : threads
}

/**
 * How many streams one thread may have that are open or not settled: as many as all its workers have open requests, and as many
 * again, since those of a worker that was killed are kept for a minute, in which the next one opens its own.
 */
export function streamsOfThread(workers: number, carriers: number, openRequests: number): number {
  return 2 * Math.ceil(workers / Math.max(1, carriers)) * openRequests
}

/** A worker's carrier: always the same one, because streams and their records are in one thread. */
export function carrierOf<Carrier>(
  name: WorkerName,
  carriers: readonly Carrier[],
): Carrier | undefined {
  return carriers[(numberOf(name) - 1) % carriers.length]
}

/** From 1, in the order of `workerNames`. */
function numberOf(name: WorkerName): number {
  const [first] = workerNames(1)
  return name === first ? 1 : Number(name.slice(`${first}-`.length))
}
