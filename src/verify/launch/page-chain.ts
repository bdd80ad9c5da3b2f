import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import { sha384 } from '../../protocol/digest.ts'

export const PAGE_BYTES = 4096

/** SHA-384, in bytes. */
export const LAUNCH_DIGEST_BYTES = 48

/** Length of PAGE_INFO, in bytes; the structure also contains this number. */
const PAGE_INFO_BYTES = 0x70

/** PAGE_TYPE of SNP_LAUNCH_UPDATE. */
const PAGE_TYPES = { normal: 1, vmsa: 2, zero: 3, unmeasured: 4, secrets: 5, cpuid: 6 } as const

/** Page kinds whose bytes are not part of the digest: empty by definition, or filled in by the secure processor. */
type EmptyPageKind = Exclude<keyof typeof PAGE_TYPES, 'normal' | 'vmsa' | 'unmeasured'>

/** Page-aligned -1 in the 48 bits of a guest physical address: the nominal address of the processor state. */
const VMSA_ADDRESS = 0xffff_ffff_f000

/** The digest of a guest without any pages. */
export const EMPTY_LAUNCH: Bytes = new Uint8Array(LAUNCH_DIGEST_BYTES)

/** Measures `contents`, whole pages one after the other from the guest physical address. */
export async function addPages(digest: Bytes, address: number, contents: Bytes): Promise<Bytes> {
  let next = digest
  for (let offset = 0; offset < contents.length; offset += PAGE_BYTES) {
    const page = contents.subarray(offset, offset + PAGE_BYTES)
    next = await addPage(next, 'normal', address + offset, await sha384(page))
  }
  return next
}

/** Measures `bytes` (whole pages) of a page kind whose contents are not measured. */
export async function addEmptyPages(
  digest: Bytes,
  kind: EmptyPageKind,
  address: number,
  bytes: number,
): Promise<Bytes> {
  let next = digest
  for (let offset = 0; offset < bytes; offset += PAGE_BYTES) {
    next = await addPage(next, kind, address + offset, EMPTY_LAUNCH)
  }
  return next
}

/** Measures the initial state of one virtual processor, one page. */
export async function addProcessor(digest: Bytes, saveArea: Bytes): Promise<Bytes> {
  return addPage(digest, 'vmsa', VMSA_ADDRESS, await sha384(saveArea))
}

/**
 * One step of the chain: SHA-384 over PAGE_INFO, which begins with the digest so far. The page is not part of an
 * initial migration image, and lower privilege levels have no rights to it.
 *
 * Source: AMD SEV-SNP firmware ABI (56860), SNP_LAUNCH_UPDATE, "PAGE_INFO".
 */
async function addPage(
  digest: Bytes,
  kind: keyof typeof PAGE_TYPES,
  address: number,
  contentsDigest: Bytes,
): Promise<Bytes> {
  const rest = new DataView(new ArrayBuffer(PAGE_INFO_BYTES - 2 * LAUNCH_DIGEST_BYTES))
  rest.setUint16(0, PAGE_INFO_BYTES, true)
  rest.setUint8(2, PAGE_TYPES[kind])
  rest.setBigUint64(8, BigInt(address), true)
  return sha384(concatBytes(digest, contentsDigest, new Uint8Array(rest.buffer)))
}
