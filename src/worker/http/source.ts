/** What workerd tells of the peer of a connection: address and port. */
interface PeerBlob {
  readonly clientIp?: unknown
}

/**
 * Whom a request comes from, as far as budgets go that nobody needs a key for. Behind the front of this router that is
 * an address that stands for the client's; on a Worker host it is what the host says of the client. Not what a client
 * says of itself: a header counts only where the platform tells no peer.
 */
export function sourceOf(request: Pick<Request, 'headers'> & { readonly cf?: unknown }): string {
  const { clientIp } = (request.cf ?? {}) as PeerBlob
  if (typeof clientIp === 'string') return clientIp.replace(/:\d+$/, '')
  return (request.headers.get('cf-connecting-ip') ?? 'unknown').slice(0, LONGEST)
}

/** As IPv6 writes it at its longest. */
const LONGEST = 45
