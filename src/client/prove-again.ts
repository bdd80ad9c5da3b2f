import { AttestationUnavailable } from './errors.ts'

/** Pauses before further attempts: a host that replaces a key names the next one a moment before it shows it. */
const TRANSIENT_DELAYS_MS = [100, 400] as const

/** How often a router that has given too many reports of late is asked again, and how long each wait may be. */
const MAX_LIMITED_RETRIES = 2
const MAX_RETRY_AFTER_SECONDS = 60

export interface ProveAgainDeps {
  /** Whether the failure may be over in a moment. */
  readonly isTransient: (error: unknown) => boolean
  readonly pause?: ((milliseconds: number) => Promise<void>) | undefined
}

/** Proves a host, again after failures that pass, and after the time that the router names when it has a limit. */
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
      // oxlint-disable-next-line no-await-in-loop -- attempts come one after the other
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

/** `Retry-After` in seconds; a date counts as none. */
export function readRetryAfter(value: string | null | undefined): { retryAfterSeconds?: number } {
  return value !== null && value !== undefined && /^\d{1,5}$/.test(value)
    ? { retryAfterSeconds: Number(value) }
    : {}
}
