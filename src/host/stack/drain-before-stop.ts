import { request, type ClientRequest } from 'node:http'
import type { Child } from './child.ts'

/** The endpoint at which a worker is told to drain. */
export interface DrainEnd {
  readonly port: number
  /** Proves that the caller is the supervisor. */
  readonly token: string
}

/**
 * How long before the end of the grace period a worker ends requests that are still open, and settles them: a third of
 * the grace period, but at most this, ms.
 */
const ENDING_MS = 5_000

/**
 * How long to wait for the worker's answer, ms, but at most a third of the grace period. After that it is stopped
 * without a drain.
 */
const ANSWER_MS = 2_000

/**
 * Wraps a worker so that it is told to drain before it is stopped. A worker that is being stopped accepts no more
 * connections, and could not learn when it will be killed. A told worker ends what is still open shortly before that.
 */
export function drainBeforeStop(worker: Child, end: DrainEnd): Child {
  return {
    ...worker,
    stop: async (graceMs) => {
      const begunAt = performance.now()
      const telling = graceMs > 0 ? await tell(end, graceMs) : undefined
      const stopped = worker.stop(Math.max(0, graceMs - (performance.now() - begunAt)))
      // Ending the request tells the worker that it was stopped, so that no further client requests will arrive.
      telling?.end()
      await stopped
      telling?.destroy()
    },
  }
}

/**
 * Tells the worker to drain.
 * @returns the request that the worker has begun to answer; undefined where it has not
 */
async function tell(
  { port, token }: DrainEnd,
  graceMs: number,
): Promise<ClientRequest | undefined> {
  const afterMs = Math.round(graceMs - Math.min(ENDING_MS, graceMs / 3))
  const telling = request({
    host: '127.0.0.1',
    port,
    path: `/?after_ms=${afterMs}`,
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'transfer-encoding': 'chunked' },
    agent: false,
  })
  const { promise: answered, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(false), Math.min(ANSWER_MS, graceMs / 3))
  telling.once('response', (answer) => {
    // The worker ends its answer once nothing is open, or dies before that.
    answer.on('error', () => {}).resume()
    resolve(answer.statusCode === 200)
  })
  telling.on('error', () => resolve(false))
  telling.flushHeaders()
  const isTold = await answered
  clearTimeout(timer)
  if (!isTold) telling.destroy()
  return isTold ? telling : undefined
}
