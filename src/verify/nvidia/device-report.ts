import * as z from 'zod'
import {
  equalBytes,
  fromBase64,
  fromHex,
  fromUtf8,
  toHex,
  type Bytes,
} from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { readAuthority } from '../x509/authority.ts'
import { readCertificate, type Certificate } from '../x509/certificate.ts'
import { verifyEcdsaSignature } from '../x509/ecdsa-signature.ts'
import { readPem } from '../x509/pem.ts'
import { keyKind } from '../x509/public-key.ts'
import { MAX_DEVICES, type ReportedDevices } from './gpu-evidence.ts'

/** SHA-256 over the SubjectPublicKeyInfo of `NVIDIA Device Identity CA`, the root of every GPU's certificates. */
export const NVIDIA_DEVICE_ROOT = 'a90c4eb5acfd3e3d03a25db6a26b84f720ad0503196c627c21ddd48dd85b06a4'

/** At least one device: an empty list would pass, because no device in it fails. */
const payloadSchema = z.looseObject({
  evidence_list: z
    .array(z.looseObject({ certificate: z.string().optional(), evidence: z.string().optional() }))
    .min(1)
    .max(MAX_DEVICES),
})

/** SPDM 1.1 (DMTF DSP0274): GET_MEASUREMENTS of all blocks with signature, 37 bytes with nonce and slot. */
const REQUEST_BYTES = 37
const REQUEST_CODES = [0x11, 0xe0] as const
const RESPONSE_CODES = [0x11, 0x60] as const
const NONCE_OFFSET = 4
const SIGNATURE_BYTES = 96
const MAX_CERTIFICATES = 8

export interface DeviceExpectation {
  /** 64 lowercase hex digits. */
  readonly nonce: string
  /** Milliseconds. */
  readonly now: number
  /** By default NVIDIA's root. */
  readonly rootSpkiSha256?: string | undefined
}

/**
 * Verifies the signed report of each device in a provider's GPU evidence, without NVIDIA's service: certificates up to
 * NVIDIA's device root, the signature over the device's measurement response to our nonce, and that all devices differ.
 * Only NVIDIA's service can tell whether the measured firmware is acceptable and whether a certificate was revoked.
 * @returns undefined where the evidence has no certificates and responses in this format
 * @throws EvidenceRefused `gpu`, with the check that failed
 * @throws MalformedEvidence when the evidence cannot be parsed or is of no device
 */
export async function verifyDeviceReports(
  payload: string,
  expected: DeviceExpectation,
): Promise<ReportedDevices | undefined> {
  const document = 'GPU evidence'
  const { evidence_list: list } = readDocument(
    payloadSchema,
    parseStrictJson(payload, document),
    document,
  )
  const carried = list.map(readDevice)
  const devices = carried.filter((device) => device !== undefined)
  if (devices.length !== carried.length) return undefined
  const keys = await Promise.all(devices.map((device) => verifyDevice(device, expected)))
  if (new Set(keys).size !== keys.length) throw new EvidenceRefused('gpu', ['gpu_distinct'])
  const ends = devices.flatMap(({ chain }) => chain.map(({ notAfter }) => notAfter))
  return { devices: keys.length, endsAt: Math.min(...ends) }
}

interface Device {
  /** From the device to the root. */
  readonly chain: readonly Certificate[]
  /** Request and response as sent over the wire; the last 96 bytes are the signature over everything before. */
  readonly transcript: Bytes
}

/** Undefined where the evidence has another format. */
function readDevice({
  certificate,
  evidence,
}: z.output<typeof payloadSchema>['evidence_list'][number]): Device | undefined {
  if (certificate === undefined || evidence === undefined) return undefined
  try {
    const chain = readPem(fromUtf8(fromBase64(certificate))).map(({ der }) => readCertificate(der))
    const transcript = fromBase64(evidence)
    if (chain.length < 2 || chain.length > MAX_CERTIFICATES || !isResponse(transcript)) {
      return undefined
    }
    return { chain, transcript }
  } catch {
    return undefined
  }
}

/** MEASUREMENTS: header, number of blocks, their length in three bytes, the blocks, a nonce, opaque data, signature. */
function isResponse(transcript: Bytes): boolean {
  const response = transcript.subarray(REQUEST_BYTES)
  if (!startsWith(transcript, REQUEST_CODES) || !startsWith(response, RESPONSE_CODES)) return false
  const view = new DataView(response.buffer, response.byteOffset, response.byteLength)
  if (response.length < 8) return false
  const blocks = view.getUint16(5, true) + (view.getUint8(7) << 16)
  const opaqueAt = 8 + blocks + 32
  if (opaqueAt + 2 > response.length) return false
  return opaqueAt + 2 + view.getUint16(opaqueAt, true) + SIGNATURE_BYTES === response.length
}

function startsWith(bytes: Bytes, codes: readonly number[]): boolean {
  return codes.every((code, index) => bytes[index] === code)
}

/**
 * Verifies one device.
 * @returns its key, for comparison with those of other devices
 */
async function verifyDevice(
  { chain, transcript }: Device,
  { nonce, now, rootSpkiSha256 = NVIDIA_DEVICE_ROOT }: DeviceExpectation,
): Promise<string> {
  const [device] = chain
  const root = chain.at(-1)
  if (device === undefined || root === undefined || !(await isChain(chain, now))) {
    throw new EvidenceRefused('gpu', ['gpu_certificates'])
  }
  if ((await sha256Hex(root.spki)) !== rootSpkiSha256) {
    throw new EvidenceRefused('gpu', ['gpu_root'])
  }
  const asked = transcript.slice(NONCE_OFFSET, NONCE_OFFSET + 32)
  if (!equalBytes(asked, fromHex(nonce))) throw new EvidenceRefused('gpu', ['gpu_report_nonce'])
  if (!(await isSigned(transcript, device.spki))) {
    throw new EvidenceRefused('gpu', ['gpu_report_signature'])
  }
  return toHex(device.spki)
}

async function isChain(chain: readonly Certificate[], now: number): Promise<boolean> {
  const links = chain.map(async (certificate, index) => {
    const issuer = chain[index + 1] ?? certificate
    const authority = readAuthority(issuer)
    return (
      certificate.notBefore <= now &&
      now <= certificate.notAfter &&
      keyKind(issuer.spki) === 'P-384' &&
      equalBytes(certificate.issuer, issuer.subject) &&
      authority.ca &&
      authority.certSign &&
      (await verifyEcdsaSignature(certificate, issuer.spki, 'P-384'))
    )
  })
  return (await Promise.all(links)).every(Boolean)
}

async function isSigned(transcript: Bytes, spki: Bytes): Promise<boolean> {
  try {
    const scheme = { name: 'ECDSA', namedCurve: 'P-384' }
    const key = await crypto.subtle.importKey('spki', spki, scheme, false, ['verify'])
    const signature = transcript.slice(-SIGNATURE_BYTES)
    const signed = transcript.slice(0, -SIGNATURE_BYTES)
    return await crypto.subtle.verify({ name: 'ECDSA', hash: 'SHA-384' }, key, signature, signed)
  } catch {
    return false
  }
}
