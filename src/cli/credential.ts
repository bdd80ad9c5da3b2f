/**
 * Whether a text can be sent as a bearer token: printable ASCII without spaces. Any other text makes an invalid header,
 * so every request would fail.
 */
export function isCredential(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}
