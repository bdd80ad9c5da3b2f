/** What workerd reports about the peer of a connection: address and port. */
interface PeerBlob {
  readonly clientIp?: unknown
}

/**
 * The network source of a request, by which endpoints without a key are rate-limited. Behind this router's own listener it
 * is an address that stands for the client's; on a Worker host it is the client address that the host reports. Headers that
 * a client can set are used only where the platform reports no peer.
 */
export function sourceOf(request: Pick<Request, 'headers'> & { readonly cf?: unknown }): string {
  const { clientIp } = (request.cf ?? {}) as PeerBlob
  if (typeof clientIp === 'string') return clientIp.replace(/:\d+$/, '')
  return (request.headers.get('cf-connecting-ip') ?? 'unknown').slice(0, MAX_SOURCE_CHARACTERS)
}

/** Length of the longest text form of an IPv6 address (RFC 4291, section 2.2). */
const MAX_SOURCE_CHARACTERS = 45
