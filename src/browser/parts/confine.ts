/**
 * Makes the browser refuse every origin but one from now on: an additional content security policy can only tighten the
 * page's own.
 * @returns whether the page may connect to this origin; false where it was already confined to another one
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
