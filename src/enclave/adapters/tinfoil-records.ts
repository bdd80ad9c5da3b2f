import { z } from 'zod'
import { hex32 } from '../../protocol/hex-schema.ts'
import { fromUtf8 } from '../../protocol/bytes.ts'
import type { PolicyOf } from '../../protocol/provider-policy.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { EvidenceRefused } from '../../verify/evidence-refused.ts'
import type { PublishedRecord } from '../../verify/providers/provenance.ts'
import type { TinfoilDocument } from '../../verify/providers/tinfoil/evidence.ts'
import type { PublishedRecords } from '../../verify/providers/tinfoil/release.ts'
import type { EvidenceDeps } from './adapter.ts'
import { requestService } from './request-service.ts'

/**
 * Tinfoil's mirror of GitHub's API, which its own clients use: no credentials and generous limits. Its answers are
 * not trusted; a record is verified by its signatures.
 */
const SERVICE = 'https://github-proxy.tinfoil.sh'
const MAX_BYTES = 1_048_576
const DOCUMENT = 'release on GitHub'

const releaseSchema = z.looseObject({ tag_name: z.string().regex(/^[\w.+-]{1,128}$/) })
const attestationsSchema = z.looseObject({
  attestations: z
    .array(z.looseObject({ bundle: z.record(z.string(), z.json()) }))
    .min(1)
    .max(64),
})

/**
 * Fetches the build records that the policy requires and the document lacks, from the newest release.
 * @throws EvidenceRefused `service_unreachable`
 * @throws MalformedEvidence when an answer does not match its schema
 */
export async function fetchRecords(
  { platform, collateral }: TinfoilDocument,
  { provenance }: PolicyOf<'tinfoil'>,
  { webFetch }: Pick<EvidenceDeps, 'webFetch'>,
): Promise<PublishedRecords> {
  if (provenance === undefined) return {}
  const machine = platform === 'tdx' ? provenance.platform : undefined
  return {
    ...(collateral.code === undefined && {
      code: await newestRecord(provenance.repository, webFetch),
    }),
    ...(machine !== undefined &&
      collateral.platform === undefined && {
        platform: await newestRecord(machine.repository, webFetch),
      }),
  }
}

async function newestRecord(repository: string, webFetch: typeof fetch): Promise<PublishedRecord> {
  const ask = async (path: string) => fromUtf8(await get(`${SERVICE}${path}`, webFetch))
  const { tag_name: tag } = read(releaseSchema, await ask(`/repos/${repository}/releases/latest`))
  const stated = await ask(`/${repository}/releases/download/${tag}/tinfoil.hash`)
  const digest = readDocument(hex32, stated.trim(), DOCUMENT)
  const { attestations } = read(
    attestationsSchema,
    await ask(`/repos/${repository}/attestations/sha256:${digest}`),
  )
  return { digest, bundle: JSON.stringify(attestations[0]?.bundle) }
}

function read<Answer>(schema: z.ZodType<Answer>, text: string): Answer {
  return readDocument(schema, parseStrictJson(text, DOCUMENT), DOCUMENT)
}

async function get(url: string, webFetch: typeof fetch) {
  const { status, body } = await requestService(webFetch, url, MAX_BYTES)
  if (status !== 200) throw new EvidenceRefused('service_unreachable')
  return body
}
