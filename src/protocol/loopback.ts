/**
 * Whether data sent to this host cannot leave the machine: an address of 127.0.0.0/8, `::1` (with or without the
 * brackets of a URL), or the name `localhost` itself. Names below `localhost` do not count: the resolver decides where
 * they lead.
 */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || LOOPBACK_V4.test(host)
}

/** Whether data sent to an address cannot be read on the way: it uses TLS, or stays on this machine. */
export function staysPrivate({ protocol, hostname }: Pick<URL, 'protocol' | 'hostname'>): boolean {
  return protocol === 'https:' || isLoopbackHost(hostname)
}

const LOOPBACK_V4 = /^127(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/
