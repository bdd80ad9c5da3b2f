import type { BatchDeps } from '../batching/batcher.ts'
import { startDeadline } from '../batching/deadline-timer.ts'
import type { LinkSocket } from './message-connection.ts'

/** The target of a connection. */
export interface UpgradeTarget {
  /** A service on the other side of the link. */
  readonly binding: { fetch(url: string, init: RequestInit): Promise<Response> }
  /** The URL of the WebSocket upgrade. */
  readonly url: string
}

/** Minimum time between two attempts to open a connection, ms. */
export const REOPEN_MS = 1_000

const OPEN_TIMEOUT_MS = 3_000

/**
 * Opens a WebSocket to another process; it belongs to the current request.
 * @throws Error when the other side does not accept it, or not in time
 */
export async function upgrade(
  { binding, url }: UpgradeTarget,
  now: BatchDeps['now'],
): Promise<LinkSocket> {
  const controller = new AbortController()
  const deadline = startDeadline(OPEN_TIMEOUT_MS, now, () => controller.abort())
  try {
    const response: Response & { webSocket?: LinkSocket | null } = await binding.fetch(url, {
      headers: { upgrade: 'websocket' },
      signal: controller.signal,
    })
    const { webSocket } = response
    if (webSocket) return webSocket
    await response.body?.cancel()
    throw new Error('no connection is taken there')
  } finally {
    deadline.stop()
  }
}
