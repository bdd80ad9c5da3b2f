import { concatBytes, fromHex, utf8, type Bytes } from '../../protocol/bytes.ts'
import { sha256 } from '../../protocol/digest.ts'
import { guidBytes } from './guid.ts'
import { LaunchError } from './launch-error.ts'
import { PAGE_BYTES } from './page-chain.ts'

const TABLE_GUID = '9438d606-4f22-4cc9-b479-a793d411fd21'
const COMMAND_LINE_GUID = '97d02dd8-bd20-4c94-aa78-e7714d36ab2a'
const INITRD_GUID = '44baf731-3a2f-4bd7-9af1-41e29169781d'
const KERNEL_GUID = '4de79437-abd2-427f-b835-d5b172d2045b'

/** GUID, 16-bit length. */
const HEADER_BYTES = 18
const ENTRY_BYTES = HEADER_BYTES + 32
const TABLE_BYTES = HEADER_BYTES + 3 * ENTRY_BYTES

/** The hypervisor pads the table to this length with zeros. */
const TABLE_ALIGNMENT = 16

/** The kernel that the firmware boots. The hypervisor supplies it; only these digests make it trustworthy. */
export interface MeasuredKernel {
  /** SHA-256 of the kernel's file, lowercase hex. */
  readonly kernelSha256: string
  /** SHA-256 of the initrd's file, lowercase hex; without an initrd, that of zero bytes. */
  readonly initrdSha256: string
  /** Without the terminating NUL that the hypervisor adds; empty where there is none. */
  readonly commandLine: string
}

/**
 * Builds the page in which the hypervisor puts the digests of kernel, initrd and command line, where the firmware looks
 * for them: `offset` bytes into a page of zeros.
 *
 * Source: QEMU, target/i386/sev.c (`SevHashTable`); OvmfPkg/AmdSev/BlobVerifierLibSevHashes.
 * @throws LaunchError when the command line contains a NUL (text after it would be measured but not used) or the table
 *   crosses the end of the page
 */
export async function kernelHashesPage(kernel: MeasuredKernel, offset: number): Promise<Bytes> {
  if (kernel.commandLine.includes('\0')) throw new LaunchError('the command line has a NUL in it')
  const table = concatBytes(
    header(TABLE_GUID, TABLE_BYTES),
    entry(COMMAND_LINE_GUID, await sha256(utf8(`${kernel.commandLine}\0`))),
    entry(INITRD_GUID, fromHex(kernel.initrdSha256)),
    entry(KERNEL_GUID, fromHex(kernel.kernelSha256)),
  )
  const padded = Math.ceil(table.length / TABLE_ALIGNMENT) * TABLE_ALIGNMENT
  if (offset + padded > PAGE_BYTES) {
    throw new LaunchError("the firmware's place for kernel hashes crosses a page")
  }
  const page = new Uint8Array(PAGE_BYTES)
  page.set(table, offset)
  return page
}

function entry(guid: string, digest: Bytes): Bytes {
  return concatBytes(header(guid, ENTRY_BYTES), digest)
}

function header(guid: string, length: number): Bytes {
  return concatBytes(guidBytes(guid), new Uint8Array([length & 0xff, length >> 8]))
}
