/**
 * Has the browser itself refuse every address but one from now on: a further content security policy can only tighten the
 * one that the page came with.
 * @returns whether the page may speak to this origin; false where it was confined to another one before
 */
export function confineTo(origin: string, page: Document): boolean {
  const before = page.head.querySelector<HTMLMetaElement>('meta[data-confined-to]')
  if (before !== null) return before.dataset['confinedTo'] === origin
  const meta = page.createElement('meta')
  meta.httpEquiv = 'Content-Security-Policy'
  meta.content = `connect-src ${origin}`
  meta.dataset['confinedTo'] = origin
  page.head.append(meta)
  return true
}
