import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { CaptureError } from '../../../src/enclave/snp/capture-error.ts'
import { createKds, newKdsWaits, type FetchedFile } from '../../../src/enclave/snp/kds.ts'

const CHIP_ID = new Uint8Array(64).fill(0xab)
const GENOA = {
  product: 'genoa',
  chipId: CHIP_ID,
  tcb: { bootloader: 10, tee: 0, snp: 27, microcode: 88 },
} as const

function setUp(answers: readonly (Partial<FetchedFile> | Error)[] = [], waits = newKdsWaits()) {
  const asked: string[] = []
  const clock = { now: 1_000_000 }
  const kds = createKds(
    async (url) => {
      const answer = answers[asked.push(url) - 1] ?? {}
      if (answer instanceof Error) throw answer
      return { status: 200, retryAfter: undefined, body: utf8('x'), ...answer }
    },
    () => clock.now,
    waits,
  )
  return { kds, asked, clock }
}

async function told(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.catch((thrown: unknown) => thrown)
  if (error instanceof CaptureError && error.fault === 'no_chain') return error.message
  throw new Error('not refused', { cause: error })
}

const refused = (detail: string) =>
  `the certificate chain of the report could not be had (${detail})`

describe('createKds', () => {
  it('asks for a VCEK by chip and patch levels', async () => {
    const { kds, asked } = setUp()
    expect(await kds.vcek(GENOA)).toEqual(utf8('x'))
    expect(asked).toEqual([
      `https://kdsintf.amd.com/vcek/v1/Genoa/${'ab'.repeat(64)}?blSPL=10&teeSPL=00&snpSPL=27&ucodeSPL=88`,
    ])
  })

  it("asks for the revocation list of a product's root", async () => {
    const { kds, asked } = setUp()
    expect(await kds.revocationList('turin', 'vlek')).toEqual(utf8('x'))
    expect(asked).toEqual(['https://kdsintf.amd.com/vlek/v1/Turin/crl'])
  })

  it('knows a Turin chip by its first eight bytes and its FMC level', async () => {
    const { kds, asked } = setUp()
    const tcb = { fmc: 1, bootloader: 1, tee: 1, snp: 4, microcode: 71 }
    await kds.vcek({ product: 'turin', chipId: CHIP_ID, tcb })
    expect(asked).toEqual([
      `https://kdsintf.amd.com/vcek/v1/Turin/${'ab'.repeat(8)}?fmcSPL=01&blSPL=01&teeSPL=01&snpSPL=04&ucodeSPL=71`,
    ])
  })

  it.each([
    ['vcek', 'https://kdsintf.amd.com/vcek/v1/Milan/cert_chain'],
    ['vlek', 'https://kdsintf.amd.com/vlek/v1/Milan/cert_chain'],
  ] as const)('asks for the authorities of a %s', async (kind, url) => {
    const { kds, asked } = setUp()
    await kds.authorities('milan', kind)
    expect(asked).toEqual([url])
  })

  it('asks for one VCEK in ten seconds', async () => {
    const { kds, asked, clock } = setUp()
    await kds.vcek(GENOA)
    clock.now += 9_999
    expect(await told(kds.vcek(GENOA))).toBe(refused("AMD's key service was just asked"))
    clock.now += 1
    await kds.vcek(GENOA)
    expect(asked).toHaveLength(2)
  })

  it('asks no sooner than all threads of the daemon together may', async () => {
    const waits = newKdsWaits()
    const first = setUp([{ status: 429 }], waits)
    const second = setUp([], waits)
    await second.kds.vcek(GENOA)
    expect(await told(first.kds.vcek(GENOA))).toBe(refused("AMD's key service was just asked"))
    expect(await told(first.kds.authorities('genoa', 'vcek'))).toBe(
      refused("AMD's key service answered 429"),
    )
    expect(await told(second.kds.authorities('genoa', 'vcek'))).toBe(
      refused("AMD's key service asked to wait"),
    )
    expect([first, second].map(({ asked }) => asked.length)).toEqual([1, 1])
  })

  it.each([
    ['30', 30_000],
    ['1', 10_000],
    ['9999', 600_000],
    [undefined, 60_000],
    ['soon', 60_000],
    [new Date(1_000_000 + 20_000).toUTCString(), 20_000],
  ])('after 429 with Retry-After %s asks nothing for %d ms', async (retryAfter, wait) => {
    const { kds, asked, clock } = setUp([{ status: 429, retryAfter }])
    expect(await told(kds.authorities('genoa', 'vcek'))).toBe(
      refused("AMD's key service answered 429"),
    )
    clock.now += wait - 1
    expect(await told(kds.authorities('genoa', 'vcek'))).toBe(
      refused("AMD's key service asked to wait"),
    )
    clock.now += 1
    await kds.authorities('genoa', 'vcek')
    expect(asked).toHaveLength(2)
  })

  it('waits no longer than it would have where the clock is set back meanwhile', async () => {
    const { kds, asked, clock } = setUp([{}, { status: 429, retryAfter: '9999' }])
    await kds.vcek(GENOA)
    expect(await told(kds.authorities('genoa', 'vcek'))).toBe(
      refused("AMD's key service answered 429"),
    )
    clock.now -= 900_000
    await kds.authorities('genoa', 'vcek')
    await kds.vcek(GENOA)
    expect(asked).toHaveLength(4)
  })

  it('says when the service cannot be reached or does not know the chip', async () => {
    const { kds } = setUp([new Error('getaddrinfo'), { status: 404 }])
    expect(await told(kds.authorities('genoa', 'vcek'))).toBe(
      refused("AMD's key service cannot be reached"),
    )
    expect(await told(kds.vcek(GENOA))).toBe(refused("AMD's key service answered 404"))
  })
})
