/** The text with a question mark for each character that ends a line or controls a terminal: what others wrote must do neither. */
export function withoutControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?')
}

/** The text with a question mark for all but printable ASCII, for ids, paths and evidence, which have no other characters. */
export function asciiOnly(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?')
}
