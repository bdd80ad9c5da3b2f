import { describe, expect, it } from 'vitest'
import { fromBase64, toBase64, utf8, type Bytes } from '../../../../src/protocol/bytes.ts'
import { readDstackEvents } from '../../../../src/verify/providers/dstack/report.ts'
import { requireTdxImage } from '../../../../src/verify/providers/dstack/tdx-image.ts'
import { readVmConfig } from '../../../../src/verify/providers/dstack/vm-config.ts'
import {
  ACPI_EVENTS,
  MEMORY,
  tdxConfig,
  tdxImage,
  tdxRegisters,
  TWO_PASS,
} from '../../../support/synthetic-dstack-tdx.ts'
import { register } from '../../../support/synthetic-tdx.ts'

type Json = Record<string, unknown>

interface Change {
  readonly config?: Json
  readonly image?: Parameters<typeof tdxImage>[0]
  readonly registers?: Partial<ReturnType<typeof tdxRegisters>>
  readonly events?: readonly Json[]
  /** Pinned; the release's own hash unless given. */
  readonly allowed?: string
}

function judgeImage({ config, image, registers, events, allowed }: Change = {}) {
  const { osImageHash, vmConfig } = tdxConfig(config, tdxImage(image))
  const { mrTd, rtMr0, rtMr1, rtMr2 } = { ...tdxRegisters(), ...registers }
  return requireTdxImage(
    {
      quote: { mrTd, rtMr: [rtMr0, rtMr1, rtMr2, register(0)] },
      vmConfig: readVmConfig(vmConfig),
      eventLog: readDstackEvents(events ?? ACPI_EVENTS),
    },
    [allowed ?? osImageHash],
  )
}

const TWELVE_GIB = 12 * 2 ** 30

describe('the release of a dstack OS on TDX', () => {
  it.each<[string, Change]>([
    ['of 2 GiB', {}],
    ['whose pages were added first and measured then', { registers: { mrTd: TWO_PASS } }],
    [
      'with memory above 4 GiB',
      { config: { memory_size: TWELVE_GIB }, registers: tdxRegisters(TWELVE_GIB) },
    ],
    ['with more in its log', { events: [{ ...ACPI_EVENTS[0], imr: 1 }, ...ACPI_EVENTS] }],
  ])('is proven by the registers of a machine %s', async (_what, change) => {
    expect(await judgeImage(change)).toBe(tdxConfig(change.config).osImageHash)
  })

  it.each<[string, Change, string]>([
    ['that is not pinned', { allowed: '00'.repeat(32) }, 'os_image_hash'],
    ['on other firmware', { registers: { mrTd: register(1) } }, 'mrtd'],
    ['on a machine that the log does not describe', { registers: { rtMr0: register(1) } }, 'rtmr0'],
    ['with another kernel', { registers: { rtMr1: register(1) } }, 'rtmr1'],
    ['with another root', { registers: { rtMr2: register(1) } }, 'rtmr2'],
    ['with other memory', { config: { memory_size: MEMORY + 4096 } }, 'rtmr0'],
    ['without a size of memory', { config: { memory_size: null } }, 'memory_list'],
    ['with less memory than its firmware has', { config: { memory_size: 4096 } }, 'memory_list'],
    ['without its files', { config: { tdx_measurement: null } }, 'os_image_files'],
    ['with files of another form', { config: { tdx_measurement: { more: 1 } } }, 'os_image_files'],
    ['without ACPI events', { events: [] }, 'acpi_events'],
    ['with one of them twice', { events: [...ACPI_EVENTS, ...ACPI_EVENTS] }, 'acpi_events'],
    [
      'with one of them without a digest',
      { events: ACPI_EVENTS.map((event) => ({ ...event, digest: '' })) },
      'acpi_events',
    ],
    ['with them exchanged', { events: exchanged() }, 'rtmr0'],
  ])('is not proven %s', async (_what, change, check) => {
    await expect(judgeImage(change)).rejects.toMatchObject({
      code: 'measurement',
      message: `the measurement is not one the operator allows (${check})`,
    })
  })

  it('is not proven with any byte of its list or its description changed', async () => {
    const { vmConfig, osImageHash } = tdxConfig()
    for (const member of ['checksum_file', 'measurement'] as const) {
      const bytes: Bytes = fromBase64(vmConfig.tdx_measurement[member])
      for (const [at, byte] of bytes.entries()) {
        const files = { ...vmConfig.tdx_measurement, [member]: toBase64(bytes.with(at, byte ^ 1)) }
        await expect(
          judgeImage({ config: { tdx_measurement: files }, allowed: osImageHash }),
        ).rejects.toMatchObject({
          code: 'measurement',
          checks: [member === 'checksum_file' ? 'os_image_hash' : 'os_image_files'],
        })
      }
    }
  })

  it.each<[string, Uint8Array]>([
    ['numbers that never end', new Uint8Array(7).fill(0x80)],
    ['a number cut off', Uint8Array.of(1, 0, 1, 0, 0x80)],
    ['fewer ranges than it says', Uint8Array.of(1, 0, 2, 0, 1)],
    ['an empty range', Uint8Array.of(1, 0, 1, 0, 0)],
    ['ranges that overlap', Uint8Array.of(1, 0, 2, 0, 2, 1, 1)],
    ['nothing in it', new Uint8Array()],
  ])(
    'is not proven by a place of memory with %s, though its list is pinned',
    async (_what, td_hob) => {
      await expect(judgeImage({ image: { tdvf: { td_hob } } })).rejects.toMatchObject({
        code: 'measurement',
        checks: ['memory_list'],
      })
    },
  )

  it.each<[string, Change['image'], string]>([
    ['of another version', { top: { version: 2 } }, 'version'],
    ['of firmware that logs another order', { tdvf: { ovmf: 'stable202505' } }, 'tdvf.ovmf'],
    ['with a digest too short', { image: { initrd_sha384: utf8('short') } }, 'initrd_sha384'],
    ['with a member that nobody knows', { top: { more: 1 } }, 'more'],
  ])('is not read from a description %s', async (_what, image, place) => {
    await expect(judgeImage({ image })).rejects.toMatchObject({
      name: 'MalformedEvidence',
      message: expect.stringContaining(place),
    })
  })
})

function exchanged(): Json[] {
  const [loader, rsdp, tables] = ACPI_EVENTS
  return [
    { ...loader, digest: rsdp?.['digest'] },
    { ...rsdp, digest: loader?.['digest'] },
    { ...tables },
  ]
}
