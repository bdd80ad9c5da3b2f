import * as z from 'zod'
import { fromBase64, type Bytes } from '../../../protocol/bytes.ts'
import { MalformedEvidence } from '../../../protocol/malformed-evidence.ts'
import { readDocument } from '../../../protocol/read-document.ts'
import { derToPem } from '../../x509/pem.ts'
import { publishedRecordSchema, type PublishedRecord } from '../provenance.ts'
import type { TinfoilCollateral } from './evidence.ts'

const NAME = 'Tinfoil collateral'
const ROOT = 'https://tinfoil.sh/collateral/'

/** One entry; its format decides which members are read. */
export const collateralSchema = z.strictObject({
  id: z.string(),
  role: z.enum(['endorsement', 'reference-values']),
  format: z.string(),
  subjects: z.array(z.string()).optional(),
  data: z.unknown(),
})

const vcekSchema = z.strictObject({ vcek_der_base64: z.string(), cert_chain_pem: z.string() })
const listSchema = z.strictObject({ crl_der_base64: z.string() })
const recordSchema = z.strictObject({
  repo: z.string(),
  tag: z.string(),
  digest: z.string(),
  sigstore_bundle: z.record(z.string(), z.json()),
})
const pcsSchema = z.looseObject({
  responses: z
    .array(
      z.looseObject({
        url: z.string(),
        headers: z.record(z.string(), z.array(z.string())).default({}),
        body_base64: z.string(),
      }),
    )
    .max(16),
})

/**
 * Reads the collateral that verifies the CPU's evidence.
 * @throws MalformedEvidence when an entry is repeated or cannot be parsed
 */
export function readTinfoilCollateral(
  entries: readonly z.output<typeof collateralSchema>[],
): TinfoilCollateral {
  if (new Set(entries.map(({ id }) => id)).size !== entries.length) {
    throw new MalformedEvidence(NAME, 'an id given twice')
  }
  const only = (format: string): unknown => {
    const [entry, ...more] = entries.filter((one) => one.format === `${ROOT}${format}`)
    if (more.length > 0) throw new MalformedEvidence(NAME, 'a format given twice')
    return entry?.data
  }
  const vcek = only('amd-vcek/v1')
  const list = only('amd-crl/v1')
  const pcs = only('intel-pcs/v1')
  const code = only('sigstore-code/v1')
  const platform = only('sigstore-platform/v1')
  return {
    ...(vcek === undefined ? {} : { snpChainPem: readChain(vcek) }),
    ...(list === undefined ? {} : { snpRevocationList: readList(list) }),
    ...(code === undefined ? {} : { code: readRecord(code) }),
    ...(platform === undefined ? {} : { platform: readRecord(platform) }),
    ...(pcs === undefined ? {} : { pcs: readPcs(pcs) }),
  }
}

function readChain(data: unknown): string {
  const { vcek_der_base64: vcek, cert_chain_pem: authorities } = readDocument(
    vcekSchema,
    data,
    NAME,
  )
  return derToPem(decode(vcek)) + authorities
}

function readList(data: unknown): Bytes {
  return decode(readDocument(listSchema, data, NAME).crl_der_base64)
}

/** Repository and tag beside the bundle are ignored; only what the bundle signs is used. */
function readRecord(data: unknown): PublishedRecord {
  const { digest, sigstore_bundle: bundle } = readDocument(recordSchema, data, NAME)
  return readDocument(publishedRecordSchema, { digest, bundle: JSON.stringify(bundle) }, NAME)
}

function readPcs(data: unknown): NonNullable<TinfoilCollateral['pcs']> {
  const { responses } = readDocument(pcsSchema, data, NAME)
  return new Map(
    responses.map(({ url, headers, body_base64: body }) => {
      const named = Object.entries(headers).map(
        ([name, [value = '']]) => [name.toLowerCase(), value] as const,
      )
      return [url, { body: decode(body), headers: new Map(named) }]
    }),
  )
}

function decode(base64: string): Bytes {
  try {
    return fromBase64(base64)
  } catch {
    throw new MalformedEvidence(NAME, 'not base64')
  }
}
