/** How many connections one front accepts. */
export interface FrontLimits {
  /** In total, including those that have not sent anything yet. */
  readonly connections: number
  /** Of these, how many may be connected to the worker. */
  readonly relayed: number
  /** How many one source may have. */
  readonly perSource: number
}

/** File descriptors for everything but connections: sockets, logs, databases and pipes. */
const RESERVED_FILES = 1_024

/**
 * The share of a worker's descriptors available to client connections, and the descriptors that workerd uses for each.
 */
const SHARE_OF_CONNECTIONS = 0.3
const FILES_PER_CONNECTION = 2

/**
 * File descriptors of a request besides its client's connection: the connections to its provider and to the daemon, two
 * descriptors for each as workerd holds them, and three connections to its customer's database.
 */
const FILES_PER_REQUEST = 10

/** Upper limits for memory: the buffers of this many streams take a few GiB, this many idle sockets about 100 MiB. */
const MAX_REQUESTS = 10_000
const MAX_CONNECTIONS = 16_384

/** How many requests one workerd may handle at a time; it exits when its file descriptors run out. */
export function openRequestsFor(openFiles: number): number {
  if (!Number.isFinite(openFiles)) return MAX_REQUESTS
  const left = openFiles - RESERVED_FILES - relayedFor(openFiles) * FILES_PER_CONNECTION
  return Math.min(Math.floor(left / FILES_PER_REQUEST), MAX_REQUESTS)
}

/**
 * The limits of each front, where `fronts` of them share a process with `openFiles` descriptors and each serves a
 * worker with as many. One source may have a quarter of a worker's capacity, unless `perSource` sets another limit.
 */
export function frontLimits(
  openFiles: number,
  fronts: number,
  perSource: number | undefined,
): FrontLimits {
  const here = Number.isFinite(openFiles)
    ? Math.floor((openFiles - RESERVED_FILES) / fronts)
    : Number.POSITIVE_INFINITY
  // A relayed connection takes two descriptors in this process, a held one takes one.
  const relayed = Math.min(relayedFor(openFiles), Math.floor(here / 3))
  return {
    connections: Math.min(here - relayed, MAX_CONNECTIONS),
    relayed,
    perSource: perSource ?? Math.ceil(relayed / 4),
  }
}

function relayedFor(openFiles: number): number {
  if (!Number.isFinite(openFiles)) return MAX_REQUESTS
  const share = (openFiles - RESERVED_FILES) * SHARE_OF_CONNECTIONS
  return Math.min(Math.floor(share / FILES_PER_CONNECTION), MAX_REQUESTS)
}
