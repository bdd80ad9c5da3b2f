import { ApiError, clientDisconnected } from '../http/errors.ts'
import { FairLimiter } from './fair-limiter.ts'
import { FairTurns } from './fair-turns.ts'
import { Refusals } from './refusals.ts'

/** Resources that all requests of one isolate share, divided fairly among customers. */
export interface SharedLimits {
  /** CPU time: to read a request, plan and admit it. */
  readonly turns: FairTurns
  /** Memory for uploads, in bytes. */
  readonly uploads: FairLimiter
  /** Measurements of audio duration, which block the thread. */
  readonly measuring: FairLimiter
  /** Parsing of large provider answers, which blocks the thread for up to a quarter of a second each. */
  readonly largeAnswers: FairLimiter
  /** Reads of one or a few rows. */
  readonly reads: FairLimiter
  /** Reads of the ledger that take the storage several milliseconds. */
  readonly queries: FairLimiter
  /** Refusals of sources that have used up their fresh attestations, as reported by the daemon. */
  readonly nonceRefusals: Refusals
  /** Refusals of keys that have reached a limit per minute, as reported by the ledger; by the hash of the key. */
  readonly minuteRefusals: Refusals
}

const MIB = 1024 * 1024

/** About a dozen uploads of maximum size at a time; the rest of a gigabyte is for everything else. */
const UPLOAD_MEMORY_BYTES = 320 * MIB

/** Three uploads of maximum size: a customer with slow uploads leaves room for nine uploads of others. */
const UPLOAD_SHARE_BYTES = 80 * MIB

/** Opens the limits of an isolate. @param now ms */
export function openSharedLimits(now: () => number): SharedLimits {
  return {
    nonceRefusals: new Refusals(now),
    minuteRefusals: new Refusals(now),
    turns: new FairTurns({
      capacity: 3,
      capacityOfCost: 16,
      activeMs: 1_000,
      maxWaiting: 256,
      maxWaitMs: 30_000,
      refusal: tooManyRequests,
      disconnected: clientDisconnected,
    }),
    uploads: new FairLimiter({
      capacity: UPLOAD_MEMORY_BYTES,
      share: UPLOAD_SHARE_BYTES,
      maxWaiting: 64,
      maxWaitMs: 180_000,
      refusal: tooManyUploads,
    }),
    measuring: new FairLimiter({
      capacity: 2,
      share: 1,
      maxWaiting: 64,
      maxWaitMs: 180_000,
      refusal: tooManyUploads,
    }),
    largeAnswers: new FairLimiter({
      capacity: 1,
      share: 1,
      maxWaiting: 64,
      maxWaitMs: 60_000,
      refusal: tooManyLargeAnswers,
    }),
    reads: new FairLimiter({
      capacity: 64,
      share: 16,
      maxWaiting: 64,
      maxWaitMs: 10_000,
      refusal: tooManyReads,
    }),
    // A place is also held during the pause after a query, so that all customers together use half of the storage's time.
    queries: new FairLimiter({
      capacity: 2,
      share: 1,
      maxWaiting: 16,
      maxWaitMs: 10_000,
      refusal: tooManyReads,
    }),
  }
}

function tooManyRequests(): ApiError {
  const message = 'Too many of your requests are waiting for their turn. Send fewer at a time.'
  return new ApiError('rate_limit_exceeded', message, { retryAfter: 5 })
}

function tooManyUploads(): ApiError {
  const message = 'Too many uploads are in progress. Try again in a few seconds.'
  return new ApiError('service_unavailable', message, { retryAfter: 10 })
}

function tooManyLargeAnswers(): ApiError {
  const message = 'Too many large answers of providers are waiting to be read.'
  return new ApiError('rate_limit_exceeded', message, { retryAfter: 10 })
}

function tooManyReads(): ApiError {
  const message = 'Too many reads are in progress. Try again in a second, with fewer at a time.'
  return new ApiError('rate_limit_exceeded', message, { retryAfter: 1 })
}
