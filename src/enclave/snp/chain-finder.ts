import type { Bytes } from '../../protocol/bytes.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import type { CheckName } from '../../verify/check-names.ts'
import type { Anchor } from '../../verify/snp/anchors.ts'
import { productOfCpuid } from '../../verify/snp/product.ts'
import { readReport, type SnpReport } from '../../verify/snp/report.ts'
import { readTcb } from '../../verify/snp/tcb.ts'
import { verifySnp } from '../../verify/snp/verify-snp.ts'
import { derToPem } from '../../verify/x509/pem.ts'
import { CaptureError } from './capture-error.ts'
import type { CertificateCache } from './certificate-cache.ts'
import type { CertificateTable } from './certificate-table.ts'
import type { ChipKey } from './kds.ts'

export interface ChainDeps {
  readonly cache: CertificateCache
  /** Milliseconds. */
  readonly now: () => number
  /** AMD's roots, except in tests. */
  readonly anchors?: readonly Anchor[]
}

/**
 * Finds the certificates of a report, VEK, ASK, ARK in PEM: from the host, then the cache, then AMD's key service.
 * Whatever their source, they are accepted only if the report verifies with them.
 * @throws CaptureError when no source has certificates with which the report verifies
 */
export async function findChain(
  report: Bytes,
  table: CertificateTable,
  deps: ChainDeps,
): Promise<string> {
  let fault = 'neither the host nor AMD gave any certificates'
  for await (const pem of candidates(readReport(report), table, deps.cache)) {
    const found = await findFault(report, pem, deps)
    if (found === undefined) return pem
    fault = found
  }
  throw new CaptureError('no_chain', fault)
}

/** Candidate chains, the nearest source first; the network is used only when all earlier candidates failed. */
async function* candidates(
  report: SnpReport,
  table: CertificateTable,
  { kept, fetched }: CertificateCache,
): AsyncGenerator<string> {
  const kind = report.signingKey === 1 ? 'vlek' : 'vcek'
  const chip = describeChip(report)
  const leaves = asPem(table[kind])
  const authorities = table.ask && table.ark ? [derToPem(table.ask) + derToPem(table.ark)] : []
  yield* pairs(leaves, authorities)
  if (chip === undefined) return
  if (kind === 'vcek') leaves.push(...asPem(await kept.vcek(chip)))
  authorities.push(...asText(await kept.authorities(chip.product, kind)))
  yield* pairs(leaves, authorities)
  if (authorities.length === 0) {
    authorities.push(...asText(await fetched.authorities(chip.product, kind)))
    yield* pairs(leaves, authorities)
  }
  // AMD gives a VLEK only to the cloud provider and does not publish it.
  if (kind === 'vcek') leaves.push(...asPem(await fetched.vcek(chip)))
  yield* pairs(leaves, authorities)
  authorities.push(...asText(await fetched.authorities(chip.product, kind)))
  yield* pairs(leaves, authorities)
}

function pairs(leaves: readonly string[], authorities: readonly string[]): string[] {
  return leaves.flatMap((leaf) => authorities.map((above) => leaf + above))
}

function asPem(der: Bytes | undefined): string[] {
  return der === undefined ? [] : [derToPem(der)]
}

/** Bytes that are not UTF-8 become U+FFFD, which is not PEM, so that damaged files are replaced like others. */
function asText(pem: Bytes | undefined): string[] {
  return pem === undefined ? [] : [new TextDecoder().decode(pem)]
}

/** The chip's parameters for the key service; undefined for an unknown generation. */
function describeChip({ cpuid, chipId, reportedTcb }: SnpReport): ChipKey | undefined {
  const product = cpuid && productOfCpuid(cpuid.family, cpuid.model)
  const tcb = product && readTcb(product, reportedTcb)
  return product && tcb && { product, chipId, tcb }
}

/** The checks that concern certificates; the guest and its policy are checked elsewhere. */
const REQUIRED: ReadonlySet<string> = new Set<CheckName>([
  'certificate_chain',
  'ark_pinned',
  'simulated_platform',
  'ark_signature',
  'ask_signature',
  'vek_signature',
  'certificate_validity',
  'certificate_roles',
  'certificate_keys',
  'vek_extensions',
  'report_signature',
  'product',
  'signing_key',
  'chip_id',
  'reported_tcb',
])

async function findFault(
  report: Bytes,
  pem: string,
  { now, anchors }: ChainDeps,
): Promise<string | undefined> {
  try {
    const options = { now: now(), ...(anchors === undefined ? {} : { anchors }) }
    const { checks } = await verifySnp(report, pem, options)
    return checks.find(({ name, ok }) => !ok && REQUIRED.has(name))?.detail
  } catch (error) {
    if (error instanceof MalformedEvidence) return error.message
    throw error
  }
}
