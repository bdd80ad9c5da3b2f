import { isIP } from 'node:net'

/** The address of a listening socket. Port 0 means any free port. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** Parses `host:port`, `[::1]:port` or `port` alone (on loopback); undefined for anything else. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const match = /^(?:(?<host>\[[0-9a-f:.]+\]|[0-9.]+|localhost):)?(?<port>\d{1,5})$/i.exec(text)
  const port = Number(match?.groups?.['port'] ?? Number.NaN)
  const host = (match?.groups?.['host'] ?? '127.0.0.1').replace(/^\[|\]$/g, '')
  if (!(port <= 65_535) || (host !== 'localhost' && isIP(host) === 0)) return undefined
  return { host: host === 'localhost' ? '127.0.0.1' : host, port }
}

/** The form used in a URL. */
export function formatAddress({ host, port }: ListenAddress): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
}
