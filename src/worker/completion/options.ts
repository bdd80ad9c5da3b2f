import { z } from 'zod'
import { ApiError } from '../http/errors.ts'
import type { Operation } from '../http/operation.ts'
import { wantsReceipt } from '../../protocol/wants-receipt.ts'

/** Options from the service's own request headers. */
export interface ChatOptions {
  readonly receipt: boolean
  /** Time budget of a request that is not streamed, ms; streams have limits of their own. */
  readonly timeoutMs: number
  /** Whether the client set a budget that is shorter than the service's default. */
  readonly hurried: boolean
}

const TIMEOUT_HEADER = 'X-Service-Timeout-Seconds'
const DEFAULT_SECONDS = 180
const MAX_SECONDS = 600

/** The header for the interface description. */
export const TIMEOUT_HEADER_DOC: NonNullable<Operation['headers']> = {
  [TIMEOUT_HEADER]: {
    description:
      `Budget in seconds of an answer that is not streamed; ${DEFAULT_SECONDS} where it is absent, ` +
      `${MAX_SECONDS} at most.`,
    schema: z.int().min(1),
  },
}

/**
 * Reads `X-Service-Receipt` and `X-Service-Timeout-Seconds` (see docs/api.md).
 * @throws ApiError invalid_timeout_override
 */
export function readChatOptions(headers: Headers, stream: boolean): ChatOptions {
  const seconds = readSeconds(headers.get(TIMEOUT_HEADER), stream)
  return {
    receipt: wantsReceipt(headers),
    timeoutMs: seconds * 1000,
    hurried: seconds < DEFAULT_SECONDS,
  }
}

function readSeconds(text: string | null, stream: boolean): number {
  if (text === null) return DEFAULT_SECONDS
  if (stream)
    throw invalid('applies to synchronous requests only; leave it out with "stream": true')
  if (!/^0*[1-9][0-9]*$/.test(text.trim())) throw invalid('must be a positive whole number')
  return Math.min(Number(text), MAX_SECONDS)
}

function invalid(reason: string): ApiError {
  return new ApiError('invalid_timeout_override', `${TIMEOUT_HEADER} ${reason}.`, {
    param: TIMEOUT_HEADER,
  })
}
