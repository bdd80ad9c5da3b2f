import * as z from 'zod'
import { hex32 } from '../../../protocol/hex-schema.ts'
import {
  concatBytes,
  fromBase64,
  fromHex,
  toHex,
  utf8,
  type Bytes,
} from '../../../protocol/bytes.ts'
import { sha256, sha256Hex } from '../../../protocol/digest.ts'
import { MalformedEvidence } from '../../../protocol/malformed-evidence.ts'
import { readDocument } from '../../../protocol/read-document.ts'
import { parseStrictJson } from '../../../protocol/strict-json.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import { collateralSchema, readTinfoilCollateral } from './collateral.ts'
import { MAX_QUOTE_BYTES } from '../../tdx/quote-layout.ts'
import type { TinfoilDocument } from './evidence.ts'

const NAME = 'Tinfoil document v3'
const ROOT = 'https://tinfoil.sh/'
const REPORT_DATA_LABEL = `${ROOT}report-data/v1`

const documentSchema = z.strictObject({
  format: z.literal(`${ROOT}predicate/attestation/v3`),
  challenge: z.strictObject({
    nonce: hex32,
    report_data: z.string().regex(/^[0-9a-f]{128}$/),
    report_data_algorithm: z.literal(REPORT_DATA_LABEL),
  }),
  cpu_evidence: z.strictObject({
    format: z.enum([`${ROOT}format/sev-snp-report/v1`, `${ROOT}format/tdx-quote/v1`]),
    report_base64: z.string(),
    endorsed: z.strictObject({ crypto_material_hash: hex32, device_evidence_hash: hex32 }),
  }),
  crypto_material: z.string(),
  device_evidence: z.string(),
  collateral: z.array(collateralSchema).max(64),
})

const cryptoSchema = z.strictObject({
  format: z.literal(`${ROOT}crypto-material/v1`),
  items: z.array(z.strictObject({ id: z.string(), format: z.string(), data: z.string() })).max(64),
})

const TLS_KEY_FORMAT = `${ROOT}key/spki-fp-sha256/v1`

const deviceSchema = z.strictObject({
  format: z.literal(`${ROOT}device-evidence/v1`),
  items: z
    .array(
      z.looseObject({ id: z.string(), kind: z.string(), vendor: z.string(), format: z.string() }),
    )
    .max(64),
})

/**
 * Parses a version 3 document for this nonce. REPORT_DATA is SHA-256 over label, nonce and the digests of the two
 * endorsed sections, computed over the decoded bytes and never over re-serialised text; zeros follow. Interim
 * variants of the format are not accepted.
 * @throws MalformedEvidence when the document does not match its schema
 * @throws EvidenceRefused `nonce`, `hardware` (`report_data`), `too_large` or `no_binding`
 */
export async function readTinfoilV3(json: unknown, nonce: string): Promise<TinfoilDocument> {
  const { challenge, cpu_evidence: cpu, ...sections } = readDocument(documentSchema, json, NAME)
  if (challenge.nonce !== nonce) throw new EvidenceRefused('nonce')
  const crypto = decode(sections.crypto_material)
  const devices = decode(sections.device_evidence)
  const reportData = await expectedReportData(nonce, crypto, devices)
  const { endorsed } = cpu
  const consistent =
    challenge.report_data === toHex(reportData) &&
    endorsed.crypto_material_hash === (await sha256Hex(crypto)) &&
    endorsed.device_evidence_hash === (await sha256Hex(devices))
  if (!consistent) throw new EvidenceRefused('hardware', ['report_data'])
  const evidence = decode(cpu.report_base64)
  if (evidence.length > MAX_QUOTE_BYTES) throw new EvidenceRefused('too_large')
  return {
    version: 'v3',
    platform: cpu.format.endsWith('tdx-quote/v1') ? 'tdx' : 'snp',
    evidence,
    reportData,
    tlsSpkiSha256: readTlsKey(crypto),
    nonceBound: true,
    devices: readSection(deviceSchema, devices).items,
    collateral: readTinfoilCollateral(sections.collateral),
  }
}

async function expectedReportData(nonce: string, crypto: Bytes, devices: Bytes): Promise<Bytes> {
  const digest = await sha256(
    concatBytes(
      utf8(REPORT_DATA_LABEL),
      fromHex(nonce),
      await sha256(crypto),
      await sha256(devices),
    ),
  )
  return concatBytes(digest, new Uint8Array(32))
}

function readTlsKey(crypto: Bytes): string {
  const { items } = readSection(cryptoSchema, crypto)
  const [tls, ...more] = items.filter(({ id }) => id === 'tls')
  if (tls === undefined || more.length > 0 || tls.format !== TLS_KEY_FORMAT) {
    throw new EvidenceRefused('no_binding')
  }
  return readDocument(hex32, tls.data, NAME)
}

function readSection<Section extends { items: { id: string }[] }>(
  schema: z.ZodType<Section>,
  bytes: Bytes,
): Section {
  const section = readDocument(schema, parseStrictJson(bytes, NAME), NAME)
  const ids = new Set(section.items.map(({ id }) => id))
  if (ids.size !== section.items.length) throw new MalformedEvidence(NAME, 'an id given twice')
  return section
}

function decode(base64: string): Bytes {
  try {
    return fromBase64(base64)
  } catch {
    throw new MalformedEvidence(NAME, 'not base64')
  }
}
