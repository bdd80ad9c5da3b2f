import { describe, expect, it } from 'vitest'
import { hintsFor } from '../../../src/cli/verify/hints.ts'
import { judge, prefixed } from '../../../src/verify/check.ts'

const SIMULATED =
  'this is the simulated platform of npm start, which proves nothing; --local accepts it, and so does --allow-simulated'
const local = { isLocal: true }
const other = { isLocal: false }

describe('the hints beside failed checks', () => {
  it('say of the platform of npm start how it is accepted, once', () => {
    const environment = judge('trust_bundle_environment', 'made for local, not for production', '')
    const platform = judge('simulated_platform', 'a simulated platform', '')
    expect(hintsFor([environment], other)).toEqual([SIMULATED])
    expect(hintsFor([environment, platform], other)).toEqual([SIMULATED])
    const staging = judge('trust_bundle_environment', 'made for staging, not for production', '')
    expect(hintsFor([staging], other)).toEqual([])
  })

  it('say of a receipt from before the last npm start why its root is another one, and of no other router', () => {
    const [header] = prefixed('router_attestation', [judge('trust_bundle_header', 'kid is a', '')])
    if (header === undefined) throw new Error('no check')
    expect(hintsFor([header], local)).toEqual([
      'each npm start makes another release root, and this receipt seems to be of an earlier one: ask the router something, and verify that receipt',
    ])
    expect(hintsFor([header], other)).toEqual([])
  })

  it('are none where every check holds', () => {
    expect(hintsFor([judge('simulated_platform', undefined, 'allowed')], local)).toEqual([])
  })
})
