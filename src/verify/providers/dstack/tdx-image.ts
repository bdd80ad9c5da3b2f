import * as z from 'zod'
import { concatBytes, equalBytes, fromHex, utf8, type Bytes } from '../../../protocol/bytes.ts'
import { sha384 } from '../../../protocol/digest.ts'
import { readDocument } from '../../../protocol/read-document.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import { guidBytes } from '../../launch/guid.ts'
import { digestMemoryList } from '../../tdx/memory-list.ts'
import type { VerifiedQuote } from '../../tdx/quote.ts'
import type { DstackEvent } from './report.ts'
import { readImageMeasurement } from './os-image.ts'
import type { VmConfig } from './vm-config.ts'

const digest = z.instanceof(Uint8Array).refine((bytes) => bytes.length === 48, 'not 48 bytes')

/** `measurement.tdx.cbor` (dstack, `TdxOsImageMeasurement`). */
const tdxImageSchema = z.strictObject({
  version: z.literal(3),
  image: z.strictObject({
    cmdline_sha384: digest,
    /** Authenticode digest of the kernel as patched by QEMU on machines of 2 GiB, or of 2.75 GiB and more. */
    kernel_authenticode: digest,
    initrd_sha384: digest,
  }),
  tdvf: z.strictObject({
    /** The firmware's order of events in RTMR0. */
    ovmf: z.literal('pre202505'),
    /** MRTD by the order in which QEMU adds and extends pages. */
    mrtd: z.strictObject({ single_pass: digest, two_pass: digest }),
    /** The firmware's own memory areas. */
    td_hob: z.instanceof(Uint8Array).refine(({ length }) => length <= 1024, 'too long'),
  }),
})

export interface TdxImageInputs {
  readonly quote: Pick<VerifiedQuote, 'mrTd' | 'rtMr'>
  readonly vmConfig: VmConfig
  readonly eventLog: readonly DstackEvent[]
}

/**
 * Finds the OS release that a guest under TDX was started from, where it is a pinned one: firmware, kernel, initrd and
 * command line of the release must yield MRTD, RTMR1 and RTMR2, and together with the machine's memory and the digests
 * of its ACPI tables, from the log, also RTMR0. The content of those tables is the host's choice: no release names
 * them.
 *
 * Source: dstack, `dstack-mr` (the method that downloads no image).
 * @returns the hash of the release
 * @throws EvidenceRefused `measurement` (`os_image_hash`, `os_image_files`, `acpi_events`, or the register that
 *   differs)
 * @throws MalformedEvidence when the release's files cannot be read
 */
export async function requireTdxImage(
  { quote, vmConfig, eventLog }: TdxImageInputs,
  allowed: readonly string[],
): Promise<string> {
  const { osImageHash, content } = await readImageMeasurement(
    vmConfig.tdxImage,
    'measurement.tdx.cbor',
    allowed,
  )
  const { image, tdvf } = readDocument(tdxImageSchema, content, 'dstack OS image')
  const { single_pass: single, two_pass: double } = tdvf.mrtd
  if (!equalBytes(quote.mrTd, single) && !equalBytes(quote.mrTd, double)) throw differs('mrtd')
  const memory = await digestMemoryList(tdvf.td_hob, vmConfig.memoryBytes ?? 0)
  const logs = [
    await firmwareEvents(memory, acpiDigests(eventLog)),
    [image.kernel_authenticode, ...(await Promise.all(BOOT_EVENTS.map(sha384)))],
    [image.cmdline_sha384, image.initrd_sha384],
  ]
  for (const [index, log] of logs.entries()) {
    const register = await extend(log)
    if (!equalBytes(register, quote.rtMr[index] ?? register.slice(1))) throw differs(`rtmr${index}`)
  }
  return osImageHash
}

const differs = (name: string) => new EvidenceRefused('measurement', [name])

/** The events after the kernel in RTMR1 when the kernel is started directly. */
const BOOT_EVENTS = [
  utf8('Calling EFI Application from Boot Option'),
  new Uint8Array(4),
  utf8('Exit Boot Services Invocation'),
  utf8('Exit Boot Services Returned with Success'),
]

/**
 * Digests of an empty volume of variables, and of the boot option that starts the kernel that was passed to the
 * firmware (OVMF before 2025-05).
 */
const EMPTY_VARIABLES = fromHex(
  '344bc51c980ba621aaa00da3ed7436f7d6e549197dfe699515dfa2c6583d95e6412af21c097d473155875ffd561d6790',
)
const FIRST_BOOT_OPTION = fromHex(
  '23ada07f5261f12f34a0bd8e46760962d6b4d576a416f1fea1c64bc656b1d28eacf7047ae6e967c58fd2a98bfa74c298',
)

const GLOBAL = '8be4df61-93ca-11d2-aa0d-00e098032b8c'
const SECURITY = 'd719b2cb-3d3a-4596-a3bc-dad00e67656f'
const UNSET_VARIABLES = [
  [GLOBAL, 'SecureBoot'],
  [GLOBAL, 'PK'],
  [GLOBAL, 'KEK'],
  [SECURITY, 'db'],
  [SECURITY, 'dbx'],
] as const

/** The events of RTMR0: memory, variables (none set), ACPI tables, and the boot order. */
async function firmwareEvents(memory: Bytes, acpi: readonly Bytes[]): Promise<Uint8Array[]> {
  const variables = UNSET_VARIABLES.map(([guid, name]) => sha384(unsetVariable(guid, name)))
  return [
    memory,
    EMPTY_VARIABLES,
    ...(await Promise.all(variables)),
    await sha384(new Uint8Array(4)),
    ...acpi,
    await sha384(new Uint8Array(2)),
    FIRST_BOOT_OPTION,
  ]
}

/** UEFI_VARIABLE_DATA without data: GUID, length of the name, length of the data, name (ASCII) in UTF-16. */
function unsetVariable(guid: string, name: string): Bytes {
  const lengths = new DataView(new ArrayBuffer(16))
  lengths.setBigUint64(0, BigInt(name.length), true)
  const wide = [...utf8(name)].flatMap((letter) => [letter, 0])
  return concatBytes(guidBytes(guid), new Uint8Array(lengths.buffer), Uint8Array.from(wide))
}

/** EV_PLATFORM_CONFIG_FLAGS. */
const ACPI_EVENT = 10
const ACPI_NAMES = ['acpi-loader', 'acpi-rsdp', 'acpi-tables']

/**
 * The digests of the ACPI events of RTMR0. The guest supplies the log, but a wrong name or digest does not yield the
 * register's value.
 */
function acpiDigests(eventLog: readonly DstackEvent[]): Bytes[] {
  return ACPI_NAMES.map((name) => {
    const [event, ...more] = eventLog.filter(
      (one) => one.imr === 0 && one.type === ACPI_EVENT && one.name === name,
    )
    if (event?.digest.length !== 96 || more.length > 0) throw differs('acpi_events')
    return fromHex(event.digest)
  })
}

async function extend(digests: readonly Uint8Array[]): Promise<Bytes> {
  let register: Bytes = new Uint8Array(48)
  for (const one of digests) {
    // Each extension depends on the one before it.
    register = await sha384(concatBytes(register, one))
  }
  return register
}
