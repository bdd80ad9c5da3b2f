import type { TransportName } from '../options.ts'

/** The first version of Bun that exposes the TLS key of a connection. */
const BUN_WITH_KEYS = [1, 4] as const

/**
 * Chooses pinned TLS wherever the runtime exposes the TLS key of a connection: under Node, Deno and newer versions of
 * Bun.
 * @param bun the version of Bun; undefined under other runtimes
 */
export function usualTransport(bun: string | undefined): TransportName {
  if (bun === undefined) return 'tls'
  const [major = 0, minor = 0] = bun.split('.').map(Number)
  const [firstMajor, firstMinor] = BUN_WITH_KEYS
  return major > firstMajor || (major === firstMajor && minor >= firstMinor) ? 'tls' : 'ehbp'
}
