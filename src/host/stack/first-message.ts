import { setTimeout as delay } from 'node:timers/promises'
import type { Child } from './child.ts'

/** Long enough for a slow (emulated) machine, ms; a child that ends is reported at once. */
const START_TIMEOUT_MS = 300_000

/**
 * Waits for the first message of a child over its IPC channel.
 * @throws Error when the child ends or sends nothing for five minutes; its process has ended then
 */
export async function firstMessage<Message>(child: Child): Promise<Message> {
  const message = new Promise<Message>((resolve) => child.process.once('message', resolve))
  return orFailure(child, message)
}

/**
 * Waits for a value from a child.
 * @throws Error when the child ends or takes five minutes; its process has ended then
 */
export async function orFailure<T>(child: Child, awaited: Promise<T>): Promise<T> {
  const done = new AbortController()
  const failure = Promise.race([
    child.ended,
    delay(START_TIMEOUT_MS, 'no sign of life for 300 s', { signal: done.signal }),
  ])
  try {
    const outcome = await Promise.race([
      awaited.then((value) => ({ value })),
      failure.then((why) => ({ why })),
    ])
    if ('value' in outcome) return outcome.value
    await child.stop(0)
    throw new Error(`did not come up: ${outcome.why}`)
  } finally {
    done.abort()
  }
}
