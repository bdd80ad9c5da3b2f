import { isLoopbackHost } from '../../protocol/loopback.ts'

/** The request headers that show where a request comes from. */
export interface RequestOrigin {
  readonly host: string | undefined
  readonly origin: string | undefined
  readonly fetchSite: string | undefined
}

/**
 * Why a request is not from a program on this machine; undefined where it may be. Without this check, a web page could
 * make the browser send prompts with the stored key: through a host name that resolves to 127.0.0.1 (DNS rebinding), or
 * across sites.
 */
export function crossOriginFault({ host, origin, fetchSite }: RequestOrigin): string | undefined {
  const address = `http://${host ?? ''}`
  if (!URL.canParse(address) || !isOwn(new URL(address).hostname)) {
    return 'it was sent to another name than this machine'
  }
  if (origin !== undefined) {
    if (EXTENSION.test(origin)) return 'a browser extension sent it'
    return isOwnOrigin(origin) ? undefined : 'a web page sent it'
  }
  return fetchSite === 'cross-site' || fetchSite === 'same-site' ? 'a web page sent it' : undefined
}

/**
 * Extensions of all browsers. The browser lets them read the answers of loopback only with a permission that its user has
 * granted; the proxy must not let those without it use the key.
 */
const EXTENSION = /^[a-z-]+-extension:/i

function isOwn(hostname: string): boolean {
  return isLoopbackHost(hostname) || hostname.endsWith('.localhost')
}

/** Allows pages of this machine, and desktop programs that show their pages under URL schemes of their own. */
function isOwnOrigin(origin: string): boolean {
  if (!URL.canParse(origin)) return false
  const { hostname, protocol } = new URL(origin)
  return protocol === 'http:' || protocol === 'https:' ? isOwn(hostname) : true
}
