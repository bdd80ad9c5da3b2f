import { request, type ClientRequest } from 'node:http'
import type { Child } from './child.ts'

/** Where a worker is told of its end. */
export interface DrainEnd {
  readonly port: number
  /** Proves that it is the supervisor who tells. */
  readonly token: string
}

/** The part of the grace period in which a worker ends what is still open, and settles it: a third, at most so many ms. */
const ENDING_MS = 5_000

/** A worker that does not answer within this time, or a third of the grace period, is stopped without having been told, ms. */
const ANSWER_MS = 2_000

/**
 * The same worker, which is told of its end before it is stopped: while it is stopped it takes no more connections, and of the time
 * when it is killed it would learn nothing. It ends what is still open shortly before that.
 */
export function drainedFirst(worker: Child, end: DrainEnd): Child {
  return {
    ...worker,
    stop: async (graceMs) => {
      const begunAt = performance.now()
      const telling = graceMs > 0 ? await tell(end, graceMs) : undefined
      const stopped = worker.stop(Math.max(0, graceMs - (performance.now() - begunAt)))
      // It is told by this that it was stopped, so that none of its clients' requests comes after.
      telling?.end()
      await stopped
      telling?.destroy()
    },
  }
}

/** The request that the worker has begun to answer; undefined where it does not. */
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
    // The worker ends its answer once nothing is open, or dies before.
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
