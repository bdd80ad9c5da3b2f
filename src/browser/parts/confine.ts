/**
 * Restricts the page's connections to one origin for the rest of its life. It adds a content security policy, which can
 * only tighten the page's own.
 * @returns whether the page may connect to this origin; false when it was already restricted to another one
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
