/** Headers that belong to one connection, which a forwarder must not pass on (RFC 9110, section 7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * Tests for headers that belong to this connection only.
 * @param connection the value of the `Connection` header, which may list further ones
 * @returns a test for header names in lower case
 */
export function hopByHop(connection: string | null | undefined): (name: string) => boolean {
  if (connection === undefined || connection === null || connection === 'keep-alive') {
    return (name) => HOP_BY_HOP.has(name)
  }
  const listed = new Set((connection ?? '').toLowerCase().split(/\s*,\s*/))
  return (name) => HOP_BY_HOP.has(name) || listed.has(name)
}
