/** How many connections one front holds. */
export interface FrontLimits {
  /** In all, those included that have not sent anything yet. */
  readonly connections: number
  /** Of them, those that have a connection to the worker behind them. */
  readonly relayed: number
  /** Of all, those of one source. */
  readonly perSource: number
}

/** What a process has open besides connections: its sockets, logs, databases and pipes. */
const FILES_FOR_THE_REST = 1_024

/** The share of a worker's descriptors that clients' connections may take, and how many workerd has open for each. */
const SHARE_OF_CONNECTIONS = 0.3
const FILES_OF_A_CONNECTION = 2

/**
 * A request besides its client's connection: its provider and its calls of the daemon, two for each connection as
 * workerd holds them, and three of its customer's database.
 */
const FILES_OF_A_REQUEST = 10

/** However many files may be open: so many streams have a few gigabytes of buffers, and so many sockets a hundred MiB. */
const MOST_REQUESTS = 10_000
const MOST_CONNECTIONS = 16_384

/** How many requests may be at work at the same time in one workerd, which ends when its descriptors run out. */
export function openRequestsFor(openFiles: number): number {
  if (!Number.isFinite(openFiles)) return MOST_REQUESTS
  const left = openFiles - FILES_FOR_THE_REST - relayedFor(openFiles) * FILES_OF_A_CONNECTION
  return Math.min(Math.floor(left / FILES_OF_A_REQUEST), MOST_REQUESTS)
}

/**
 * The bounds of each front where `fronts` of them share a process that may have `openFiles` open, and each serves a
 * worker that may have as many. A quarter of what one can carry is for one source, unless `perSource` says otherwise.
 */
export function frontLimits(
  openFiles: number,
  fronts: number,
  perSource: number | undefined,
): FrontLimits {
  const here = Number.isFinite(openFiles)
    ? Math.floor((openFiles - FILES_FOR_THE_REST) / fronts)
    : Number.POSITIVE_INFINITY
  // A relayed connection has two descriptors here, one that is only held has one.
  const relayed = Math.min(relayedFor(openFiles), Math.floor(here / 3))
  return {
    connections: Math.min(here - relayed, MOST_CONNECTIONS),
    relayed,
    perSource: perSource ?? Math.ceil(relayed / 4),
  }
}

function relayedFor(openFiles: number): number {
  if (!Number.isFinite(openFiles)) return MOST_REQUESTS
  const share = (openFiles - FILES_FOR_THE_REST) * SHARE_OF_CONNECTIONS
  return Math.min(Math.floor(share / FILES_OF_A_CONNECTION), MOST_REQUESTS)
}
