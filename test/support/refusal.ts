import { ApiError } from '../../src/worker/http/errors.ts'

export interface Refusal {
  readonly code: string
  readonly message: string
  readonly param?: string
}

/** What a client would be told about the error; fails where it is no `ApiError`. */
export function told(error: unknown): Refusal {
  if (!(error instanceof ApiError)) throw new Error('not an ApiError', { cause: error })
  const { param } = error.details
  return { code: error.code, message: error.message, ...(param === undefined ? {} : { param }) }
}

/** The refusal that `act` throws; fails where it throws none. */
export function refusalOf(act: () => unknown): Refusal {
  try {
    act()
  } catch (error) {
    return told(error)
  }
  throw new Error('nothing was refused')
}
