import { closeSync, openSync } from 'node:fs'
import { isIP } from 'node:net'
import { networkInterfaces, type NetworkInterfaceInfo } from 'node:os'
import { isLoopbackHost } from '../../protocol/loopback.ts'

/**
 * Why no connection was established. `exhausted`: this process or its machine has no file descriptors, memory or local
 * ports left for a connection to any peer.
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

/**
 * Either all local ports are in use towards that address, or this machine has no address of that family to connect
 * from.
 */
const NO_ADDRESS = 'EADDRNOTAVAIL'

/** System error codes for exhausted resources. */
const EXHAUSTED: ReadonlySet<unknown> = new Set([
  NO_ADDRESS,
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
])

/**
 * System error codes for an address that this machine cannot reach, such as an IPv6 address without IPv6 connectivity.
 */
const NO_WAY: ReadonlySet<unknown> = new Set(['ENETUNREACH', 'EAFNOSUPPORT'])

/** A system error of a connection attempt to one address. */
type ConnectError = NodeJS.ErrnoException & { readonly address?: unknown }

/** The addresses of this machine, by interface. */
type OwnAddresses = typeof networkInterfaces

/**
 * Classifies the error of a failed connection attempt.
 * @param ownAddresses called only where the error may mean that there is no address to connect from
 */
export function connectFailureKind(
  error: ConnectError,
  ownAddresses: OwnAddresses = networkInterfaces,
): ConnectFailureKind {
  // Where a name has several addresses, there is one error for each of them.
  const each: readonly ConnectError[] = error instanceof AggregateError ? error.errors : [error]
  const tried = each.filter((one) => !hasNoWay(one, ownAddresses))
  return tried.length > 0 && tried.every(isExhausted) ? 'exhausted' : 'unreachable'
}

function hasNoWay({ code, address }: ConnectError, ownAddresses: OwnAddresses): boolean {
  if (code !== NO_ADDRESS) return NO_WAY.has(code)
  return typeof address === 'string' && !canReachFromHere(address, ownAddresses)
}

/**
 * Whether this machine has an address to connect from: of the same family, and from which the target can be reached.
 */
function canReachFromHere(address: string, ownAddresses: OwnAddresses): boolean {
  const family = `IPv${isIP(address)}`
  try {
    const own = Object.values(ownAddresses()).flatMap((addresses = []) => addresses)
    return own.some((one) => one.family === family && leadsTo(one, address))
  } catch {
    // Reading the addresses needs a file descriptor, too.
    return true
  }
}

/** A loopback address reaches no other machine, and an IPv6 link-local address reaches only link-local ones. */
function leadsTo({ internal, address: from }: NetworkInterfaceInfo, address: string): boolean {
  if (internal) return isLoopbackHost(address)
  return !LINK_LOCAL.test(from) || LINK_LOCAL.test(address)
}

/** `fe80::/10`. Every interface has such an address unless IPv6 is turned off. */
const LINK_LOCAL = /^fe[89ab][\da-f]:/i

/** A name lookup that failed for lack of a file descriptor reports another code, so this tries to open a file. */
function isExhausted({ code, syscall }: ConnectError): boolean {
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
