/**
 * Replaces each character that ends a line or controls a terminal with a question mark, so that text from others can do
 * neither.
 */
export function withoutControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?')
}

/**
 * Replaces everything but printable ASCII with question marks, for ids, paths and evidence, which have no other
 * characters.
 */
export function asciiOnly(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?')
}
