import * as z from 'zod'
import { copyBytes, type Bytes } from '../../../protocol/bytes.ts'
import { readDocument } from '../../../protocol/read-document.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import { decodeMessagePack } from './message-pack.ts'
import { ScaleReader } from './scale-reader.ts'

const NAME = 'dstack attestation'

/** Real attestations take about 4 KiB, or 12 KiB with certificates. */
const MAX_BYTES = 65_536

/**
 * The attestation of a guest under SEV-SNP. Certificates are fetched from AMD instead, and events are not read, because
 * nothing binds them.
 */
export interface SnpAttestation {
  /** 1184 bytes. */
  readonly report: Bytes
  /** The document whose digest must be HOST_DATA. */
  readonly mrConfig: string
  /** The machine's configuration, JSON. */
  readonly config: string
}

/**
 * Reads a guest's attestation in either form of dstack (`VersionedAttestation`): SCALE, which begins with a zero, or
 * MessagePack, a map.
 * @throws EvidenceRefused `unknown_format` when it is of another platform than SEV-SNP, `too_large`
 * @throws MalformedEvidence when it cannot be read
 */
export function readSnpAttestation(bytes: Bytes): SnpAttestation {
  if (bytes.length > MAX_BYTES) throw new EvidenceRefused('too_large')
  return bytes[0] === 0 ? readScale(bytes) : readMessagePack(bytes)
}

/** SEV-SNP's number among the five platforms of dstack. */
const SNP_PLATFORM = 3

function readScale(bytes: Bytes): SnpAttestation {
  const reader = new ScaleReader(bytes, NAME)
  reader.byte()
  if (reader.byte() !== SNP_PLATFORM) throw new EvidenceRefused('unknown_format')
  const report = reader.bytes()
  reader.list(() => reader.bytes())
  const mrConfig = reader.text()
  reader.list(() => [reader.text(), reader.bytes()])
  reader.fixed(64)
  const config = reader.text()
  reader.end()
  return { report, mrConfig, config }
}

const someBytes = z.union([
  z.instanceof(Uint8Array).transform(copyBytes),
  z
    .array(z.int().min(0).max(255))
    .max(MAX_BYTES)
    .transform((octets) => Uint8Array.from(octets)),
])

const mapSchema = z.looseObject({
  version: z.literal(1),
  platform: z.looseObject({ kind: z.string(), data: z.unknown() }),
  stack: z.looseObject({ data: z.looseObject({ config: z.string() }) }),
})
const snpSchema = z.looseObject({ report: someBytes, mr_config: z.string() })

function readMessagePack(bytes: Bytes): SnpAttestation {
  const { platform, stack } = readDocument(mapSchema, decodeMessagePack(bytes, NAME), NAME)
  if (platform.kind !== 'sev-snp') throw new EvidenceRefused('unknown_format')
  const { report, mr_config: mrConfig } = readDocument(snpSchema, platform.data, NAME)
  return { report, mrConfig, config: stack.data.config }
}
