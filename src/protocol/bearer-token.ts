/** What is wrong with a text that `isBearerToken` refuses. */
export const NO_BEARER_TOKEN =
  'has a space, a line break or another character that no bearer token may have'

/**
 * Whether a text can be sent as a bearer token: printable ASCII without spaces. With any other text, every request
 * would fail.
 */
export function isBearerToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}
