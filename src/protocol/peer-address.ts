/** Host and port of an address, as `connect` takes them. */
export interface PeerAddress {
  readonly isTls: boolean
  readonly host: string
  readonly port: number
}

/** The peer of an http or https address. */
export function peerAddress(url: string): PeerAddress {
  const { protocol, hostname, port } = new URL(url)
  const isTls = protocol === 'https:'
  const standard = isTls ? 443 : 80
  return {
    isTls,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? standard : Number(port),
  }
}
