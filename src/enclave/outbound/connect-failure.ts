import { closeSync, openSync } from 'node:fs'

/**
 * `exhausted`: this process, or its machine, has no file descriptors, memory or ports of its own left for a connection, whoever
 * the peer is.
 */
export type ConnectFailureKind = 'unreachable' | 'timeout' | 'exhausted'

/** No connection was established. Callers use the kind; the message is never shown. */
export class ConnectFailure extends Error {
  readonly kind: ConnectFailureKind

  constructor(kind: ConnectFailureKind, options?: ErrorOptions) {
    super(`connect: ${kind}`, options)
    this.name = 'ConnectFailure'
    this.kind = kind
  }
}

/** What the system says where nothing is left; `EADDRNOTAVAIL`: all ports of this machine are in use towards that address. */
const EXHAUSTED: ReadonlySet<unknown> = new Set([
  'EADDRNOTAVAIL',
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
])

/** What it says of an address that this machine has no way to, such as one of IPv6 where there is none. */
const NO_WAY: ReadonlySet<unknown> = new Set(['ENETUNREACH', 'EAFNOSUPPORT'])

/** What an error of a connection that was not established means. */
export function connectFailureKind(error: NodeJS.ErrnoException): ConnectFailureKind {
  // One for each address of a name, where there are several.
  const each: readonly NodeJS.ErrnoException[] =
    error instanceof AggregateError ? error.errors : [error]
  const tried = each.filter(({ code }) => !NO_WAY.has(code))
  return tried.length > 0 && tried.every(isExhausted) ? 'exhausted' : 'unreachable'
}

/** A name that could not be looked up for want of a descriptor fails with other codes, so one is opened to see. */
function isExhausted({ code, syscall }: NodeJS.ErrnoException): boolean {
  return EXHAUSTED.has(code) || (syscall === 'getaddrinfo' && !canOpenFile())
}

function canOpenFile(): boolean {
  try {
    closeSync(openSync('/dev/null', 'r'))
    return true
  } catch {
    return false
  }
}
