import { describe, expect, it } from 'vitest'
import { concatBytes, fromBase64, fromHex, toBase64, utf8 } from '../../../../src/protocol/bytes.ts'
import { sha256Hex } from '../../../../src/protocol/digest.ts'
import { requireSnpImage } from '../../../../src/verify/providers/dstack/snp-image.ts'
import { readVmConfig } from '../../../../src/verify/providers/dstack/vm-config.ts'
import { snpConfig, snpImage, SNP_LAUNCH } from '../../../support/synthetic-dstack-snp.ts'

type Json = Record<string, unknown>

const MEASURED = fromHex(SNP_LAUNCH)
const MEASUREMENT = 'the measurement is not one the operator allows'

const RELEASE = await snpConfig()

/** A machine that reports this, with the launch digest of an honest one. */
function judgeImage(config: string, allowed = RELEASE.osImageHash) {
  return requireSnpImage(MEASURED, readVmConfig(config).snpLaunch, [allowed])
}

describe('the release of a dstack OS on SEV-SNP', () => {
  it('is proven by the launch digest that an independent tool computes', async () => {
    expect(await judgeImage(RELEASE.config)).toBe(RELEASE.osImageHash)
  })

  const described = async (change: Json) => (await snpConfig({}, await snpImage(change))).config
  const launched = async (change: Json) => (await snpConfig(change)).config

  it.each<[string, Promise<string>, string]>([
    ['another kernel', described({ kernel_hash: new Uint8Array(32) }), 'os_image_hash'],
    ['another number of processors', launched({ vcpus: 3 }), 'os_image_launch'],
    ['another type of processor', launched({ vcpu_type: 'EPYC-Milan' }), 'os_image_launch'],
    ['a type that nobody knows', launched({ vcpu_type: 'EPYC-Unknown' }), 'os_image_launch'],
    ['no SNP', launched({ guest_features: 0x20 }), 'guest_features'],
    ['features that open the guest', launched({ guest_features: 0x23 }), 'guest_features'],
    ['features beyond 32 bits', launched({ guest_features: 2 ** 40 + 1 }), 'guest_features'],
    [
      'another description than its list names',
      launched({ measurement: toBase64(utf8('x')) }),
      'os_image_files',
    ],
    ['more processors than any machine has', launched({ vcpus: 100_000 }), 'os_image_files'],
    ['a launch in the form of before', launched({ vcpus: undefined }), 'os_image_files'],
    ['a launch that is no JSON', Promise.resolve('{"sev_snp_measurement":"{"}'), 'os_image_files'],
    ['nothing', Promise.resolve(''), 'os_image_files'],
  ])('is not proven with %s', async (_what, config, check) => {
    await expect(judgeImage(await config)).rejects.toMatchObject({
      code: 'measurement',
      message: `${MEASUREMENT} (${check})`,
    })
  })

  it('is not proven by a list that names its description twice', async () => {
    const list = fromBase64(readVmConfig(RELEASE.config).snpLaunch?.checksum_file ?? '')
    const doubled = concatBytes(list, list)
    const config = await launched({ checksum_file: toBase64(doubled) })
    await expect(judgeImage(config, await sha256Hex(doubled))).rejects.toMatchObject({
      code: 'measurement',
      checks: ['os_image_files'],
    })
  })

  it('is not proven with any byte of its list or its description changed', async () => {
    const { snpLaunch } = readVmConfig(RELEASE.config)
    for (const member of ['checksum_file', 'measurement'] as const) {
      const bytes = fromBase64(snpLaunch?.[member] ?? '')
      for (const [at, byte] of bytes.entries()) {
        const changed = snpLaunch && { ...snpLaunch, [member]: toBase64(bytes.with(at, byte ^ 1)) }
        await expect(
          requireSnpImage(MEASURED, changed, [RELEASE.osImageHash]),
        ).rejects.toMatchObject({
          code: 'measurement',
          checks: [member === 'checksum_file' ? 'os_image_hash' : 'os_image_files'],
        })
      }
    }
  })

  it.each<[string, Json, string]>([
    ['of another version', { version: 2 }, 'version'],
    [
      'with a section too large',
      { ovmf_sections: [{ gpa: 0, size: 2 ** 31, type: 1 }] },
      'ovmf_sections',
    ],
    ['with a member that nobody knows', { more: 1 }, 'more'],
  ])(
    'is not read from a description %s, though its list is pinned',
    async (_what, change, place) => {
      const odd = await snpConfig({}, await snpImage(change))
      await expect(judgeImage(odd.config, odd.osImageHash)).rejects.toMatchObject({
        name: 'MalformedEvidence',
        message: expect.stringContaining(place),
      })
    },
  )

  it('is not read from a description that is no CBOR, though its list is pinned', async () => {
    const odd = await snpConfig({}, utf8('x'))
    await expect(judgeImage(odd.config, odd.osImageHash)).rejects.toThrow(
      'malformed dstack OS image: not CBOR',
    )
  })

  it.each<[string, Json]>([
    ['sections that nobody knows', { ovmf_sections: [{ gpa: 0, size: 4096, type: 9 }] }],
    ['no page for the digests of its kernel', { ovmf_sections: [{ gpa: 0, size: 4096, type: 1 }] }],
  ])('is not proven by a firmware with %s', async (_what, change) => {
    const odd = await snpConfig({}, await snpImage(change))
    await expect(judgeImage(odd.config, odd.osImageHash)).rejects.toMatchObject({
      code: 'measurement',
      checks: ['os_image_launch'],
    })
  })
})
