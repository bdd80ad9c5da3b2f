import { ADDRCONFIG, lookup, type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'

/** Looks up all addresses of a name. */
export type LookUpAll = (
  hostname: string,
  done: (error: Error | null, addresses: LookupAddress[]) => void,
) => void

/**
 * Lets concurrent callers share one lookup per name. Node runs few lookups at a time, and one does not end before the
 * system's resolver gives up: without sharing, calls to a provider whose name servers do not answer would delay the
 * calls to all others.
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

/** Converts a lookup to the form that `net.connect` takes. */
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

/** Looks up names as Node's connections do by default, but shared. */
export const lookUpShared = shareLookups((hostname, done) => {
  lookup(hostname, { all: true, hints: ADDRCONFIG }, (error, addresses) =>
    done(error, error === null ? addresses : []),
  )
})

export const sharedLookup = lookupBy(lookUpShared)
