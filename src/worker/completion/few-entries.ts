import { ApiError } from '../http/errors.ts'

/**
 * Maximum number of entries. More tools than any client offers: their descriptions alone would fill the context of most
 * models.
 */
export const MAX_ENTRIES = 1024

/**
 * To be called before any work on each entry of a list, such as the tools of a request: a body may contain hundreds of
 * thousands, each of which could take longer than its parsing, and more memory than its text.
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

/**
 * Maximum number of unknown members, more than any client sends. It bounds the memory of a request, and the work of naming
 * dropped members.
 */
export const MAX_UNKNOWN_MEMBERS = 256

/**
 * To be called for each member that the router does not know.
 * @param count how many there are so far
 * @throws ApiError invalid_request_error
 */
export function requireFewUnknown(count: number): void {
  if (count <= MAX_UNKNOWN_MEMBERS) return
  const message = 'The request body has too many members that the router does not know.'
  throw new ApiError('invalid_request_error', message)
}
