import { mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { utf8, type Bytes } from '../../../src/protocol/bytes.ts'
import { readPem } from '../../../src/verify/x509/pem.ts'
import type { SimulatedChain } from '../../../src/enclave/simulated/chain.ts'
import { signSimulatedReport } from '../../../src/enclave/simulated/report.ts'
import { CaptureError } from '../../../src/enclave/snp/capture-error.ts'
import {
  certificateDirectory,
  createCertificateCache,
} from '../../../src/enclave/snp/certificate-cache.ts'
import type { Kds } from '../../../src/enclave/snp/kds.ts'
import { createMachineSource } from '../../../src/enclave/snp/machine-source.ts'
import { NOW, syntheticChain } from '../../support/synthetic-snp.ts'
import { encodeCertificateTable, GUID } from './encode-certificate-table.ts'
import { FakeTsmTree } from './fake-tsm-tree.ts'

const DATA = new Uint8Array(64).fill(7)
const NAMES = { arkName: 'ARK-Genoa' }

let chip: SimulatedChain
let other: SimulatedChain

beforeAll(async () => {
  ;[chip, other] = await Promise.all([syntheticChain(NAMES), syntheticChain(NAMES)])
}, 60_000)

function ders({ pem }: SimulatedChain): readonly [vek: Bytes, ask: Bytes, ark: Bytes] {
  const [vek, ask, ark] = readPem(pem).map(({ der }) => der)
  if (!vek || !ask || !ark) throw new Error('not a chain')
  return [vek, ask, ark]
}

interface Given {
  readonly table?: Bytes
  readonly kds?: Partial<Kds>
  readonly directory?: string
  readonly report?: (data: Bytes) => Promise<Bytes>
}

/** A machine with that chip, a host that gives that table, and a key service that gives what it is told. */
async function setUp({ table, kds = {}, directory, report }: Given) {
  const asked: string[] = []
  const service: Omit<Kds, 'revocationList'> = {
    async vcek(key) {
      asked.push('vcek')
      return kds.vcek?.(key) ?? ders(chip)[0]
    },
    async authorities(product, kind) {
      asked.push('authorities')
      const [, ...above] = chip.pem.split(/(?<=-----END CERTIFICATE-----\n)/)
      return kds.authorities?.(product, kind) ?? utf8(above.join(''))
    },
  }
  const kept = directory ?? (await mkdtemp(join(tmpdir(), 'cmr-kds-')))
  const tree = new FakeTsmTree({
    report: report ?? ((data) => signSimulatedReport(chip, { reportData: data })),
    ...(table === undefined ? {} : { certificateTable: table }),
  })
  const source = createMachineSource(
    { files: tree, root: '/tsm', newName: () => crypto.randomUUID() },
    {
      cache: createCertificateCache(service, certificateDirectory(kept)),
      now: () => NOW,
      anchors: [{ product: 'genoa', spkiSha256: chip.arkSpkiSha256 }],
    },
    async (chainPem, offered) => (chainPem === chip.pem ? (offered ?? chip.crl) : undefined),
  )
  return { source, asked, directory: kept }
}

function wholeTable(chain: SimulatedChain): Bytes {
  const [vek, ask, ark] = ders(chain)
  return encodeCertificateTable([
    [GUID.vcek, vek],
    [GUID.ask, ask],
    [GUID.ark, ark],
  ])
}

async function told(work: Promise<unknown>): Promise<readonly [string, string]> {
  const error: unknown = await work.catch((thrown: unknown) => thrown)
  if (error instanceof CaptureError) return [error.fault, error.message]
  throw new Error('not refused', { cause: error })
}

function refuseAsDown(): Promise<never> {
  return Promise.reject(new CaptureError('no_chain', 'down'))
}

describe('createMachineSource', () => {
  it('takes the chain that the host gives, and requests nothing', async () => {
    const { source, asked } = await setUp({ table: wholeTable(chip) })
    const captured = await source.capture(DATA)
    expect(captured).toMatchObject({ chainPem: chip.pem, provider: 'sev_guest' })
    expect(asked).toEqual([])
  })

  it("brings the revocation list of its chain's root, and offers what the host gave", async () => {
    const { source } = await setUp({ table: wholeTable(chip) })
    expect((await source.capture(DATA)).crl).toEqual(chip.crl)
    const [vek, ask, ark] = ders(chip)
    const listed = encodeCertificateTable([
      [GUID.vcek, vek],
      [GUID.ask, ask],
      [GUID.ark, ark],
      [GUID.crl, utf8('a list')],
    ])
    const given = await setUp({ table: listed })
    expect((await given.source.capture(DATA)).crl).toEqual(utf8('a list'))
  })

  it('gets what the host does not give from the key service, and keeps it', async () => {
    const { source, asked, directory } = await setUp({})
    expect((await source.capture(DATA)).chainPem).toBe(chip.pem)
    expect((await source.capture(DATA)).chainPem).toBe(chip.pem)
    expect(asked).toEqual(['authorities', 'vcek'])
    expect(await readdir(directory)).toHaveLength(2)
    const later = await setUp({ directory })
    expect((await later.source.capture(DATA)).chainPem).toBe(chip.pem)
    expect(later.asked).toEqual([])
  })

  it('gets only the authorities where the host gives the VCEK alone', async () => {
    const { source, asked } = await setUp({
      table: encodeCertificateTable([[GUID.vcek, ders(chip)[0]]]),
    })
    expect((await source.capture(DATA)).chainPem).toBe(chip.pem)
    expect(asked).toEqual(['authorities'])
  })

  it('replaces a VCEK of the host that is of another chip', async () => {
    const { source, asked } = await setUp({ table: wholeTable(other) })
    const { chainPem } = await source.capture(DATA)
    expect(readPem(chainPem)[0]?.der).toEqual(ders(chip)[0])
    expect(asked).toContain('vcek')
  })

  it.each([
    ['other text', utf8('damaged')],
    ['bytes that are no text', new Uint8Array(7).fill(0xff)],
  ])('verifies kept certificates again, and replaces those that are %s', async (_what, damaged) => {
    const { source, directory } = await setUp({})
    await source.capture(DATA)
    for (const name of await readdir(directory)) await writeFile(join(directory, name), damaged)
    const later = await setUp({ directory })
    expect((await later.source.capture(DATA)).chainPem).toBe(chip.pem)
    expect(later.asked).toEqual(['vcek', 'authorities'])
  })

  it('refuses certificates under which the report does not verify', async () => {
    const { source } = await setUp({ kds: { vcek: async () => ders(other)[0] } })
    const [fault, message] = await told(source.capture(DATA))
    expect(fault).toBe('no_chain')
    expect(message).toContain('the certificate chain of the report could not be had')
  })

  it('passes on why the key service gave nothing', async () => {
    const { source } = await setUp({ kds: { authorities: refuseAsDown } })
    expect(await told(source.capture(DATA))).toEqual([
      'no_chain',
      'the certificate chain of the report could not be had (down)',
    ])
  })

  it('refuses a malformed table and a malformed report', async () => {
    const broken = await setUp({ table: new Uint8Array(30).fill(9) })
    expect(await told(broken.source.capture(DATA))).toEqual([
      'bad_certificates',
      'the certificate table is malformed (the table has no end)',
    ])
    const report = async (data: Bytes) => {
      const bytes = await signSimulatedReport(chip, { reportData: data })
      bytes[1183] = 1
      return bytes
    }
    const dirty = await setUp({ table: wholeTable(chip), report })
    expect(await told(dirty.source.capture(DATA))).toEqual([
      'unknown',
      'the report could not be captured (malformed SNP report: reserved bytes are not zero)',
    ])
  })
})
