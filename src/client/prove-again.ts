import { AttestationUnavailable } from './errors.ts'

/**
 * Pauses before further attempts, ms: a host that replaces its key announces the next key shortly before it uses it.
 */
const TRANSIENT_DELAYS_MS = [100, 400] as const

/** Maximum number of retries after a rate limit, and the maximum pause before each. */
const MAX_LIMITED_RETRIES = 2
const MAX_RETRY_AFTER_SECONDS = 60

export interface ProveAgainDeps {
  /** Whether the failure may be temporary. */
  readonly isTransient: (error: unknown) => boolean
  readonly pause?: ((milliseconds: number) => Promise<void>) | undefined
}

/** Verifies a host, with retries after temporary failures, and after the router's `Retry-After` for a rate limit. */
export async function proveAgain<T>(
  prove: () => Promise<T>,
  { isTransient, pause = sleep }: ProveAgainDeps,
): Promise<T> {
  const delays = [...TRANSIENT_DELAYS_MS]
  for (let limited = 0; ;) {
    try {
      return await prove()
    } catch (error) {
      const delay = isTransient(error) ? delays.shift() : limitedDelay(error, limited++)
      if (delay === undefined) throw error
      await pause(delay)
    }
  }
}

function limitedDelay(error: unknown, before: number): number | undefined {
  const seconds = error instanceof AttestationUnavailable ? error.retryAfterSeconds : undefined
  if (seconds === undefined || seconds > MAX_RETRY_AFTER_SECONDS) return undefined
  return before < MAX_LIMITED_RETRIES ? seconds * 1000 : undefined
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds)
  })
}

/** `Retry-After` in seconds; a date is ignored. */
export function readRetryAfter(value: string | null | undefined): { retryAfterSeconds?: number } {
  return value !== null && value !== undefined && /^\d{1,5}$/.test(value)
    ? { retryAfterSeconds: Number(value) }
    : {}
}
