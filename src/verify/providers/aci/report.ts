import * as z from 'zod'
import { hex32 } from '../../../protocol/hex-schema.ts'
import { concatBytes, fromHex, utf8, type Bytes } from '../../../protocol/bytes.ts'
import { canonicalJson } from '../../../protocol/canonical-json.ts'
import { sha256, sha256Hex } from '../../../protocol/digest.ts'
import { readDocument } from '../../../protocol/read-document.ts'
import { parseStrictJson } from '../../../protocol/strict-json.ts'
import { unixSeconds } from '../../../protocol/timestamp.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import { readDstackEvents, type DstackMachine } from '../dstack/report.ts'
import { readVmConfig } from '../dstack/vm-config.ts'

const NAME = 'ACI report'

const hex = z.string().regex(/^([0-9a-f]{2})+$/)
const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/)

const keysetSchema = z.looseObject({
  not_after: unixSeconds,
  receipt_signing_keys: z
    .array(z.looseObject({ key_id: z.string(), algo: z.string(), public_key: z.string() }))
    .max(64),
  tls_public_keys: z
    .array(
      z.looseObject({
        spki_sha256: hex32,
        domain: z.string().nullish(),
      }),
    )
    .max(64),
})

const reportSchema = z.looseObject({
  api_version: z.literal('aci/1'),
  workload_keyset_digest: digest,
  attestation: z.looseObject({
    tee_type: z.string(),
    workload_keyset: z.json(),
    report_data: z.string(),
    evidence: z.looseObject({
      quote: hex,
      event_log: z.unknown(),
      app_compose: z.string(),
      vm_config: z.unknown().optional(),
    }),
  }),
})

/** A workload's report with its keyset, bound to each other and to a nonce; the quote is not verified. */
export interface AciReport {
  readonly machine: Extract<DstackMachine, { tee: 'tdx' }>
  /** The 64 bytes that the quote's REPORT_DATA must equal. */
  readonly reportData: Bytes
  readonly appCompose: string
  readonly keyset: AciKeyset
}

export interface AciKeyset {
  /** `sha256:<hex>` over its canonical JSON. */
  readonly digest: string
  /** Milliseconds since 1970. */
  readonly notAfter: number
  readonly tlsKeys: readonly { readonly spkiSha256: string; readonly domain: string | undefined }[]
  /** Raw public key of the first ed25519 key that signs receipts, lowercase hex. */
  readonly receiptKey: string | undefined
}

/**
 * Reads a report that was requested with this nonce (ACI specification, sections 3 and 4). REPORT_DATA is the SHA-256
 * of a statement with fixed bytes, which names the digest of the keyset and the nonce; zeros follow. Everything else in
 * the report (the origin of the code, the served models) is not bound and is ignored.
 * @throws MalformedEvidence when the report cannot be read
 * @throws EvidenceRefused `nonce`, `hardware` or `unknown_format`
 */
export async function readAciReport(text: string, nonce: string): Promise<AciReport> {
  const { attestation, workload_keyset_digest: stated } = readDocument(
    reportSchema,
    parseStrictJson(utf8(text), NAME),
    NAME,
  )
  if (attestation.tee_type !== 'tdx') throw new EvidenceRefused('unknown_format')
  const keysetDigest = `sha256:${await sha256Hex(canonicalJson(attestation.workload_keyset))}`
  if (stated !== keysetDigest) throw new EvidenceRefused('hardware', ['keyset_digest'])
  const statement = `{"keyset_digest":"${keysetDigest}","nonce":"${nonce}","purpose":"aci.report_data.v1"}`
  const bound = await sha256(utf8(statement))
  if (attestation.report_data !== (await sha256Hex(statement))) throw new EvidenceRefused('nonce')
  const { evidence } = attestation
  return {
    machine: {
      tee: 'tdx',
      quote: fromHex(evidence.quote),
      eventLog: readDstackEvents(evidence.event_log),
      vmConfig: readVmConfig(evidence.vm_config),
    },
    reportData: concatBytes(bound, new Uint8Array(32)),
    appCompose: evidence.app_compose,
    keyset: readKeyset(attestation.workload_keyset, keysetDigest),
  }
}

function readKeyset(json: unknown, keysetDigest: string): AciKeyset {
  const keyset = readDocument(keysetSchema, json, NAME)
  const receiptKey = keyset.receipt_signing_keys.find(
    ({ algo, public_key: key }) => algo === 'ed25519' && /^[0-9a-f]{64}$/.test(key),
  )
  return {
    digest: keysetDigest,
    notAfter: keyset.not_after * 1000,
    tlsKeys: keyset.tls_public_keys.map(({ spki_sha256: spkiSha256, domain }) => ({
      spkiSha256,
      domain: domain ?? undefined,
    })),
    receiptKey: receiptKey?.public_key,
  }
}
