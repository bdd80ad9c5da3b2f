import { createHook } from 'node:async_hooks'
import { afterEach, describe, expect, it } from 'vitest'
import {
  lookupBy,
  shareLookups,
  type LookUpAll,
} from '../../../src/enclave/outbound/shared-lookup.ts'
import { connectTcp } from '../../../src/enclave/outbound/tcp-connect.ts'
import { connectTls } from '../../../src/enclave/outbound/tls-connect.ts'
import { freePort } from '../../support/free-port.ts'

type Done = Parameters<LookUpAll>[1]

/** Look-ups that end when they are told to. */
function openLookups() {
  const asked: { readonly hostname: string; readonly done: Done }[] = []
  const lookUp = shareLookups((hostname, done) => void asked.push({ hostname, done }))
  const heard: string[] = []
  const ask = (hostname: string) =>
    lookUp(hostname, (error, addresses) =>
      heard.push(error?.message ?? addresses.map(({ address }) => address).join()),
    )
  return { asked, heard, ask }
}

describe('look-ups that are shared', () => {
  it('are one for all that wait for the same name', () => {
    const { asked, heard, ask } = openLookups()
    for (const name of ['a.example', 'a.example', 'b.example', 'a.example']) ask(name)
    expect(asked.map(({ hostname }) => hostname)).toEqual(['a.example', 'b.example'])
    asked[0]?.done(null, [{ address: '1.1.1.1', family: 4 }])
    expect(heard).toEqual(['1.1.1.1', '1.1.1.1', '1.1.1.1'])
    asked[1]?.done(new Error('not found'), [])
    expect(heard.at(-1)).toBe('not found')
  })

  it('are made again for whoever asks after their end', () => {
    const { asked, heard, ask } = openLookups()
    ask('a.example')
    asked[0]?.done(new Error('not found'), [])
    ask('a.example')
    asked[1]?.done(null, [{ address: '1.1.1.1', family: 4 }])
    expect(heard).toEqual(['not found', '1.1.1.1'])
  })
})

describe('a look-up for a connection', () => {
  const rows = [
    { address: '1.1.1.1', family: 4 },
    { address: '2606:4700::1111', family: 6 },
  ]
  const found = (lookUp: LookUpAll, all: boolean) =>
    new Promise((resolve) => {
      lookupBy(lookUp)('name', { all }, (error, ...address) => resolve(error?.message ?? address))
    })

  it('gives all addresses, or the first with its family', async () => {
    const lookUp: LookUpAll = (_name, done) => done(null, rows)
    expect(await found(lookUp, true)).toEqual([rows])
    expect(await found(lookUp, false)).toEqual(['1.1.1.1', 4])
  })

  it.each([true, false])(
    'fails as the look-up does, or without an address (all: %s)',
    async (all) => {
      expect(await found((_name, done) => done(new Error('not found'), []), all)).toBe('not found')
      expect(await found((_name, done) => done(null, []), all)).toBe('no address')
    },
  )
})

describe('connections that are opened at the same time', () => {
  let lookups = 0
  const counter = createHook({
    init: (_id, type) => void (lookups += type === 'GETADDRINFOREQWRAP' ? 1 : 0),
  })
  afterEach(() => void counter.disable())

  it('look the name of one peer up once', async () => {
    const target = { host: 'localhost', port: await freePort(), connectMs: 30_000, now: Date.now }
    lookups = 0
    counter.enable()
    const opening = Array.from({ length: 5 }, () => [
      connectTcp(target),
      connectTls({ ...target, webPki: false }),
    ])
    const refused = { message: 'connect: unreachable' }
    await Promise.all(opening.flat().map((one) => expect(one).rejects.toMatchObject(refused)))
    expect(lookups).toBe(1)
  })
})
