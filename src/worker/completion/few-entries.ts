import { ApiError } from '../http/errors.ts'

/** More tools than any client offers: their descriptions alone would fill the context of most models. */
export const MAX_ENTRIES = 1024

/**
 * To be asked before anything is done for each entry of a list, such as the tools of a request: a body has room for hundreds of
 * thousands, of which each may take longer than parsing it, and more memory than its text.
 * @param param the member with the list
 * @throws ApiError invalid_request_error
 */
export function requireFewEntries(list: unknown, param: string): void {
  if (!Array.isArray(list) || list.length <= MAX_ENTRIES) return
  throw new ApiError(
    'invalid_request_error',
    `"${param}" must have at most ${MAX_ENTRIES} entries.`,
    {
      param,
    },
  )
}

/** More than any client sends; bounds the memory of a request, and the work of naming those that are dropped. */
export const MAX_UNKNOWN_MEMBERS = 256

/**
 * To be asked for each member that the router does not know.
 * @param count how many there are so far
 * @throws ApiError invalid_request_error
 */
export function requireFewUnknown(count: number): void {
  if (count <= MAX_UNKNOWN_MEMBERS) return
  const message = 'The request body has too many members that the router does not know.'
  throw new ApiError('invalid_request_error', message)
}
