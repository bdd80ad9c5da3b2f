import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { StartError } from './start-error.ts'

const POLL_MS = 50
const ONE_TRY_MS = 2_000
const NOTICE_AFTER_MS = 5_000

/** Prints once, for a user waiting at the terminal, why the start takes long. */
export interface Notice {
  /** Ms of waiting; 5,000 unless given. */
  readonly afterMs?: number
  /** Called with the last answer. */
  readonly tell: (last: string) => void
}

/**
 * Waits until `GET /healthz` answers 200.
 * @throws StartError when there is no 200 within `timeoutMs`; the message names the last answer
 */
export async function untilHealthy(
  baseUrl: string,
  timeoutMs: number,
  notice?: Notice,
): Promise<void> {
  const begun = performance.now()
  let untold = notice
  let last = 'no answer'
  while (performance.now() < begun + timeoutMs) {
    try {
      const answer = await fetch(`${baseUrl}/healthz`, { signal: AbortSignal.timeout(ONE_TRY_MS) })
      if (answer.status === 200) {
        await answer.body?.cancel()
        return
      }
      last = `status ${answer.status}: ${await reasonOf(answer)}`
    } catch (error) {
      last = isTimeout(error) ? 'no answer in time' : 'no connection'
    }
    if (untold && performance.now() >= begun + (untold.afterMs ?? NOTICE_AFTER_MS)) {
      untold.tell(last)
      untold = undefined
    }
    await delay(POLL_MS)
  }
  throw new StartError(`the router is not healthy after ${timeoutMs / 1000} s: ${last}`)
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError'
}

const errorSchema = z.object({ error: z.object({ message: z.string() }) })

async function reasonOf(answer: Response): Promise<string> {
  const parsed = errorSchema.safeParse(await answer.json().catch(() => undefined))
  return parsed.success ? parsed.data.error.message : 'no reason given'
}
