import { ADDRCONFIG, lookup, type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'

/** Looks up all addresses of a name. */
export type LookUpAll = (
  hostname: string,
  done: (error: Error | null, addresses: LookupAddress[]) => void,
) => void

/**
 * Has all that wait for the addresses of one name share one look-up. A process makes two at a time, and none ends before the
 * system gives it up: the calls of a provider whose name servers are silent would hold up those of all other providers.
 */
export function shareLookups(lookUp: LookUpAll): LookUpAll {
  const waiting = new Map<string, Parameters<LookUpAll>[1][]>()
  return (hostname, done) => {
    const known = waiting.get(hostname)
    known?.push(done)
    if (known !== undefined) return
    const all = [done]
    waiting.set(hostname, all)
    lookUp(hostname, (error, addresses) => {
      waiting.delete(hostname)
      for (const tell of all) tell(error, addresses)
    })
  }
}

/** A look-up in the form that connections take. */
export function lookupBy(lookUp: LookUpAll): LookupFunction {
  return (hostname, { all }, callback) => {
    lookUp(hostname, (error, addresses) => {
      const [first] = addresses
      if (error !== null || first === undefined) callback(error ?? new Error('no address'), [])
      else if (all === true) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
  }
}

/** As connections of Node do it by themselves, but shared. */
export const lookUpShared = shareLookups((hostname, done) => {
  lookup(hostname, { all: true, hints: ADDRCONFIG }, (error, addresses) =>
    done(error, error === null ? addresses : []),
  )
})

export const sharedLookup = lookupBy(lookUpShared)
