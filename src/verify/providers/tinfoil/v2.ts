import * as z from 'zod'
import { fromBase64, toHex, type Bytes } from '../../../protocol/bytes.ts'
import { MalformedEvidence } from '../../../protocol/malformed-evidence.ts'
import { readBounded } from '../../../protocol/read-bounded.ts'
import { readDocument } from '../../../protocol/read-document.ts'
import { fieldOf } from '../../snp/report.ts'
import { REPORT_BYTES } from '../../snp/report-layout.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import { MAX_QUOTE_BYTES, quoteReportData } from '../../tdx/quote-layout.ts'
import type { TinfoilDocument } from './evidence.ts'

const NAME = 'Tinfoil document v2'
const PREDICATE = 'https://tinfoil.sh/predicate/'
const FORMATS = {
  [`${PREDICATE}sev-snp-guest/v2`]: 'snp',
  [`${PREDICATE}tdx-guest/v2`]: 'tdx',
} as const

const documentSchema = z.strictObject({ format: z.string(), body: z.string() })

export function isTinfoilV2(json: unknown): boolean {
  return documentSchema.safeParse(json).success
}

/**
 * Parses `{format, body}`, whose body is a gzipped report or quote in base64. REPORT_DATA holds the SPKI digest of the
 * TLS key and the HPKE key, and no nonce.
 * @throws MalformedEvidence when the document does not match its schema
 * @throws EvidenceRefused for an unknown format, an archive that cannot be unpacked, or one that is too large
 */
export async function readTinfoilV2(json: unknown): Promise<TinfoilDocument> {
  const { format, body } = readDocument(documentSchema, json, NAME)
  const platform = Object.entries(FORMATS).find(([name]) => name === format)?.[1]
  if (platform === undefined) throw new EvidenceRefused('unknown_format')
  const evidence = await unzip(decode(body))
  const reportData = platform === 'snp' ? snpReportData(evidence) : quoteReportData(evidence)
  return {
    version: 'v2',
    platform,
    evidence,
    reportData,
    tlsSpkiSha256: toHex(reportData.subarray(0, 32)),
    nonceBound: false,
    devices: [],
    collateral: {},
  }
}

function snpReportData(report: Bytes): Bytes {
  if (report.length !== REPORT_BYTES) throw new MalformedEvidence(NAME, 'no SNP report')
  return fieldOf(report, 'reportData')
}

function decode(body: string): Bytes {
  try {
    return fromBase64(body)
  } catch {
    throw new MalformedEvidence(NAME, 'body is not base64')
  }
}

/** Unpacks at most the size of the largest quote, whatever size the archive states. */
async function unzip(archive: Bytes): Promise<Bytes> {
  let opened: Bytes | undefined
  try {
    const body = new Response(archive).body?.pipeThrough(new DecompressionStream('gzip'))
    opened = await readBounded(body ?? null, MAX_QUOTE_BYTES)
  } catch (cause) {
    throw new EvidenceRefused('malformed', [NAME], { cause })
  }
  if (opened === undefined) throw new EvidenceRefused('too_large')
  return opened
}
