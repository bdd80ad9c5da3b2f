import { closeSync, openSync } from 'node:fs'
import { isIP } from 'node:net'
import { networkInterfaces, type NetworkInterfaceInfo } from 'node:os'
import { isLoopbackHost } from '../../protocol/loopback.ts'

/**
 * `exhausted`: this process, or its machine, has no file descriptors, memory or ports of its own left for a connection to
 * any peer.
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

/** All ports of this machine are in use towards that address, or it has no address of that family to connect from. */
const NO_ADDRESS = 'EADDRNOTAVAIL'

/** What the system says where nothing is left. */
const EXHAUSTED: ReadonlySet<unknown> = new Set([
  NO_ADDRESS,
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
])

/** What it says of an address that this machine has no way to, such as one of IPv6 where there is none. */
const NO_WAY: ReadonlySet<unknown> = new Set(['ENETUNREACH', 'EAFNOSUPPORT'])

/** An error of the system as it says why a connection to one address was not established. */
type ConnectError = NodeJS.ErrnoException & { readonly address?: unknown }

/** The addresses of this machine, by interface. */
type OwnAddresses = typeof networkInterfaces

/**
 * What an error of a connection that was not established means.
 * @param ownAddresses asked only where the error may mean that there is no address to connect from
 */
export function connectFailureKind(
  error: ConnectError,
  ownAddresses: OwnAddresses = networkInterfaces,
): ConnectFailureKind {
  // One for each address of a name, where there are several.
  const each: readonly ConnectError[] = error instanceof AggregateError ? error.errors : [error]
  const tried = each.filter((one) => !hasNoWay(one, ownAddresses))
  return tried.length > 0 && tried.every(isExhausted) ? 'exhausted' : 'unreachable'
}

function hasNoWay({ code, address }: ConnectError, ownAddresses: OwnAddresses): boolean {
  if (code !== NO_ADDRESS) return NO_WAY.has(code)
  return typeof address === 'string' && !canReachFromHere(address, ownAddresses)
}

/** Whether this machine has an address to connect from: of the same family, and one that leads there. */
function canReachFromHere(address: string, ownAddresses: OwnAddresses): boolean {
  const family = `IPv${isIP(address)}`
  try {
    const own = Object.values(ownAddresses()).flatMap((addresses = []) => addresses)
    return own.some((one) => one.family === family && leadsTo(one, address))
  } catch {
    // Its addresses cannot be read without a descriptor.
    return true
  }
}

/** From the loopback there is no way to another machine, and from a link-local address of IPv6 none but to those of the same link. */
function leadsTo({ internal, address: from }: NetworkInterfaceInfo, address: string): boolean {
  if (internal) return isLoopbackHost(address)
  return !LINK_LOCAL.test(from) || LINK_LOCAL.test(address)
}

/** `fe80::/10`; every interface has such an address where IPv6 is not turned off. */
const LINK_LOCAL = /^fe[89ab][\da-f]:/i

/** A name that could not be looked up for want of a descriptor fails with other codes, so one is opened to see. */
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
