import type { Bytes } from '../../protocol/bytes.ts'
import { readFirmware, type Firmware, type FirmwareSection } from './firmware.ts'
import { kernelHashesPage, type MeasuredKernel } from './kernel-hashes.ts'
import { LaunchError } from './launch-error.ts'
import { addEmptyPages, addPages, addProcessor, EMPTY_LAUNCH, PAGE_BYTES } from './page-chain.ts'
import { RESET_VECTOR, saveArea } from './save-area.ts'

/** Only SNPActive: what QEMU requests from KVM when nothing else is configured. */
export const DEFAULT_GUEST_FEATURES = 1n

/** The measured state of a guest that QEMU with KVM starts under SEV-SNP, apart from its firmware. */
export interface LaunchState {
  /** The kernel that is booted directly (`kernel-hashes=on`); `undefined` when the firmware boots from a disk. */
  readonly kernel: MeasuredKernel | undefined
  readonly processors: number
  /** CPUID signature of the virtual processors. */
  readonly cpuSignature: number
  /** SEV_FEATURES of the guest. */
  readonly guestFeatures: bigint
}

export interface Launch extends LaunchState {
  /** The OVMF volume, as given to `-bios`. */
  readonly firmware: Bytes
}

/** What an OVMF volume requires of a launch, without the volume itself. */
export type FirmwareDemands = Pick<Firmware, 'sections' | 'resetAddress' | 'hashesTableAddress'>

/**
 * Computes the launch digest of a guest, 48 bytes: the `measurement` of its SNP reports. The firmware is measured
 * first, then the sections that its metadata requires, then the initial state of every processor.
 *
 * Source: AMD SEV-SNP firmware ABI (56860), SNP_LAUNCH_UPDATE; QEMU, target/i386/sev.c, for the order.
 * @throws LaunchError when the guest would not start or its kernel would not be measured
 */
export async function computeLaunchDigest(launch: Launch): Promise<Bytes> {
  const firmware = readFirmware(launch.firmware)
  const measured = await addPages(EMPTY_LAUNCH, firmware.address, firmware.volume)
  return finishLaunchDigest(measured, firmware, launch)
}

/**
 * Like `computeLaunchDigest`, starting from the digest of the firmware's volume alone.
 * @throws LaunchError like `computeLaunchDigest`
 */
export async function finishLaunchDigest(
  measuredFirmware: Bytes,
  firmware: FirmwareDemands,
  launch: LaunchState,
): Promise<Bytes> {
  const hashesPage = await buildHashesPage(firmware, launch.kernel)
  const resetAddress = startOfOthers(firmware, launch.processors)
  let digest = measuredFirmware
  for (const section of firmware.sections) digest = await addSection(digest, section, hashesPage)
  for (let index = 0; index < launch.processors; index++) {
    const state = saveArea({
      startAddress: index === 0 ? RESET_VECTOR : resetAddress,
      signature: launch.cpuSignature,
      features: launch.guestFeatures,
    })
    digest = await addProcessor(digest, state)
  }
  return digest
}

/**
 * Builds the page of kernel digests. It must be measured, and be where the firmware reads it, or the digests would bind
 * nothing.
 */
async function buildHashesPage(
  { sections, hashesTableAddress }: FirmwareDemands,
  kernel: MeasuredKernel | undefined,
): Promise<Bytes | undefined> {
  if (kernel === undefined) return undefined
  const section = sections.find(({ kind }) => kind === 'kernel-hashes')
  if (section === undefined || hashesTableAddress === undefined) {
    throw new LaunchError(
      'the firmware does not check a kernel: use a build with kernel hashes (OvmfPkg/AmdSev)',
    )
  }
  const offset = hashesTableAddress - section.address
  if (offset < 0 || offset >= PAGE_BYTES) {
    throw new LaunchError('the firmware looks for kernel hashes outside the page it has measured')
  }
  return kernelHashesPage(kernel, offset)
}

function startOfOthers({ resetAddress }: FirmwareDemands, processors: number): number {
  if (!Number.isSafeInteger(processors) || processors < 1) {
    throw new LaunchError('a guest has one processor or more')
  }
  if (processors > 1 && !resetAddress) {
    throw new LaunchError('the firmware has no reset block: it can start one processor only')
  }
  return resetAddress ?? RESET_VECTOR
}

/** Measures a section. Without a kernel to boot, the page for its digests stays empty. */
async function addSection(
  digest: Bytes,
  { kind, address, bytes }: FirmwareSection,
  hashesPage: Bytes | undefined,
): Promise<Bytes> {
  if (kind === 'kernel-hashes' && hashesPage !== undefined) {
    return addPages(digest, address, hashesPage)
  }
  const pageKind = kind === 'secrets' || kind === 'cpuid' ? kind : 'zero'
  return addEmptyPages(digest, pageKind, address, bytes)
}
