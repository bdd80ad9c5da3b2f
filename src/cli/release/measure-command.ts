import { readFile } from 'node:fs/promises'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { copyBytes, toHex, type Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { cpuSignature } from '../../verify/launch/cpu-signature.ts'
import type { MeasuredKernel } from '../../verify/launch/kernel-hashes.ts'
import { computeLaunchDigest, DEFAULT_GUEST_FEATURES } from '../../verify/launch/launch-digest.ts'
import { LaunchError } from '../../verify/launch/launch-error.ts'
import { hashFile } from './files.ts'
import { ReleaseError } from './release-error.ts'
import { print, wholeNumber } from './terminal.ts'

interface MeasureOptions {
  ovmf: string
  kernel?: string
  initrd?: string
  append?: string
  vcpus: number
  vcpuType: number
  guestFeatures: bigint
  json?: boolean
}

/** `measure`: computes the launch measurement for `sign-bundle --allow`. */
export function addMeasureCommand(program: Command): void {
  program
    .command('measure')
    .description('compute the SEV-SNP launch measurement of a guest that QEMU starts')
    .requiredOption('--ovmf <file>', 'the firmware, as given to -bios')
    .option('--kernel <file>', 'the kernel, where it is booted directly with kernel-hashes=on')
    .option('--initrd <file>', 'its initrd')
    .option('--append <text>', 'its command line')
    .requiredOption('--vcpus <n>', 'number of virtual processors', wholeNumber)
    .requiredOption(
      '--vcpu-type <type>',
      "QEMU's CPU type, such as EPYC-v4, or a CPU signature (0x800f12)",
      processorType,
    )
    .addOption(
      new Option('--guest-features <hex>', 'SEV_FEATURES of the guest')
        .argParser(guestFeatures)
        .default(DEFAULT_GUEST_FEATURES, '0x1'),
    )
    .option('--json', 'print the digests of the parts too')
    .action(measure)
}

async function measure(options: MeasureOptions): Promise<void> {
  const firmware = await readBytes(options.ovmf)
  const kernel = await readKernel(options)
  const measurement = toHex(
    await orRefuse(() =>
      computeLaunchDigest({
        firmware,
        kernel,
        processors: options.vcpus,
        cpuSignature: options.vcpuType,
        guestFeatures: options.guestFeatures,
      }),
    ),
  )
  if (options.json !== true) {
    console.log(measurement)
    return
  }
  print({
    measurement,
    firmware_sha256: await sha256Hex(firmware),
    kernel_sha256: kernel?.kernelSha256 ?? null,
    initrd_sha256: kernel?.initrdSha256 ?? null,
    command_line: kernel?.commandLine ?? null,
    vcpus: options.vcpus,
    cpu_signature: `0x${options.vcpuType.toString(16)}`,
    guest_features: `0x${options.guestFeatures.toString(16)}`,
  })
}

async function readKernel({
  kernel,
  initrd,
  append,
}: MeasureOptions): Promise<MeasuredKernel | undefined> {
  if (kernel === undefined) {
    if (initrd === undefined && append === undefined) return undefined
    throw new ReleaseError('an initrd or a command line is measured with its --kernel')
  }
  return {
    kernelSha256: await hashFile(kernel),
    initrdSha256: initrd === undefined ? await sha256Hex('') : await hashFile(initrd),
    commandLine: append ?? '',
  }
}

async function readBytes(path: string): Promise<Bytes> {
  try {
    return copyBytes(await readFile(path))
  } catch (cause) {
    throw new ReleaseError(`${path} cannot be read`, { cause })
  }
}

async function orRefuse<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof LaunchError) throw new ReleaseError(cause.message, { cause })
    throw cause
  }
}

function processorType(text: string): number {
  try {
    return cpuSignature(text)
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : 'not a CPU type')
  }
}

/** Bit 0 (SNPActive) is set for every SNP guest, so a value without it is a mistake. */
function guestFeatures(text: string): bigint {
  const value = /^0x[0-9a-f]{1,16}$/.test(text) ? BigInt(text) : 0n
  if ((value & DEFAULT_GUEST_FEATURES) !== 0n) return value
  throw new InvalidArgumentError('give hex such as 0x1 or 0x21; bit 0 (SNPActive) is always set')
}
