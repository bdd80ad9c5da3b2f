/** Whether a text can be sent as a bearer token: of any other no header can be made, so that every request would fail. */
export function isCredential(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}
