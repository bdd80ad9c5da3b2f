import { workerNames, type WorkerName } from './worker-name.ts'

/**
 * How many carriers (threads of the daemon beside its main thread) carry the workers' calls: as many as there are
 * workers, or as requested, if fewer. 0 where one would suffice, because the main thread then does it.
 */
export function carriersFor(workers: number, asked = workers): number {
  const threads = Math.min(workers, asked)
  return threads === 1 ? 0 : threads
}

/**
 * How many streams one thread may have that are open or not settled: twice the open requests of all its workers,
 * because the streams of a killed worker are kept for a minute, in which its successor opens its own.
 */
export function streamsOfThread(workers: number, carriers: number, openRequests: number): number {
  return 2 * Math.ceil(workers / Math.max(1, carriers)) * openRequests
}

/** A worker's carrier: always the same one, because a stream and its record are in one thread. */
export function carrierOf<Carrier>(
  name: WorkerName,
  carriers: readonly Carrier[],
): Carrier | undefined {
  return carriers[(numberOf(name) - 1) % carriers.length]
}

/** The worker's number, from 1, in the order of `workerNames`. */
function numberOf(name: WorkerName): number {
  const [first] = workerNames(1)
  return name === first ? 1 : Number(name.slice(`${first}-`.length))
}
