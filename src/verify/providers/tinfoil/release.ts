import * as z from 'zod'
import type { PolicyOf } from '../../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import type { TinfoilDocument } from './evidence.ts'
import type { JudgeOptions } from '../judged-evidence.ts'
import { requireRecord, noProvenance, type PublishedRecord, type Release } from '../provenance.ts'

const PREDICATE = 'https://tinfoil.sh/predicate/'

const register = z.string().regex(/^[0-9a-f]{96}$/)

const codeSchema = z.looseObject({
  snp_measurement: register,
  tdx_measurement: z.looseObject({ rtmr1: register, rtmr2: register }),
})

const machinesSchema = z.record(z.string(), z.looseObject({ mrtd: register, rtmr0: register }))

/** The table of virtual machines in each kind of platform record. */
const PLATFORM_RECORDS = new Map<string, z.ZodType<z.output<typeof machinesSchema>>>([
  [`${PREDICATE}hardware-measurements/v1`, machinesSchema],
  [
    `${PREDICATE}platform-endorsements/v1`,
    z.looseObject({ measurements: machinesSchema }).transform(({ measurements }) => measurements),
  ],
])

/** Build records of code and platform, from the document or fetched separately. */
export interface PublishedRecords {
  readonly code?: PublishedRecord | undefined
  readonly platform?: PublishedRecord | undefined
}

/** The document's own records, else those that were fetched. */
export function recordsOf(
  { collateral }: Pick<TinfoilDocument, 'collateral'>,
  fetched: PublishedRecords,
): PublishedRecords {
  return {
    code: collateral.code ?? fetched.code,
    platform: collateral.platform ?? fetched.platform,
  }
}

/** The measured values: a launch digest, or MRTD, RTMR0, RTMR1 and RTMR2. Lowercase hex. */
export type Measured =
  | { readonly platform: 'snp'; readonly measurement: string }
  | { readonly platform: 'tdx'; readonly registers: readonly string[] }

/**
 * Requires a measurement that the operator pinned, or that of a release which the pinned workflow built and logged: for
 * SEV-SNP the launch digest; for TDX RTMR1 and RTMR2, while MRTD and RTMR0 must be those of a virtual machine in the
 * platform's own record.
 * @returns the releases found
 * @throws EvidenceRefused `measurement` or `provenance`
 */
export function requireRelease(
  measured: Measured,
  records: PublishedRecords,
  policy: PolicyOf<'tinfoil'>,
  options: Pick<JudgeOptions, 'verifyProvenance' | 'now'>,
): { readonly release?: Release; readonly platform_release?: Release } {
  const { allowed_measurements: allowed, provenance } = policy
  if (provenance === undefined) {
    if (allowed?.includes(joined(measured)) !== true) throw new EvidenceRefused('measurement')
    return {}
  }
  const deps = { now: options.now, verifyProvenance: options.verifyProvenance ?? noProvenance }
  const code = requireRecord(records.code, provenance, deps)
  const built = codeSchema.safeParse(code.predicate).data
  if (code.predicateType !== `${PREDICATE}snp-tdx-multiplatform/v1` || built === undefined) {
    throw new EvidenceRefused('provenance', ['record_predicate'])
  }
  if (measured.platform === 'snp') {
    requireEqual(measured.measurement, built.snp_measurement)
    return { release: code.release }
  }
  const [mrTd, rtMr0, rtMr1, rtMr2] = measured.registers
  requireEqual(rtMr1, built.tdx_measurement.rtmr1)
  requireEqual(rtMr2, built.tdx_measurement.rtmr2)
  if (provenance.platform === undefined) {
    throw new EvidenceRefused('provenance', ['platform_identity'])
  }
  const platform = requireRecord(records.platform, provenance.platform, deps)
  const machines = PLATFORM_RECORDS.get(platform.predicateType)?.safeParse(platform.predicate).data
  if (machines === undefined) throw new EvidenceRefused('provenance', ['record_predicate'])
  const known = Object.values(machines).some(({ mrtd, rtmr0 }) => mrtd === mrTd && rtmr0 === rtMr0)
  if (!known) throw new EvidenceRefused('provenance', ['platform_measurement'])
  return { release: code.release, platform_release: platform.release }
}

/** The name of the check by which the policy decides what may run. */
export function originCheck({ provenance }: PolicyOf<'tinfoil'>): 'measurement' | 'provenance' {
  return provenance === undefined ? 'measurement' : 'provenance'
}

function joined(measured: Measured): string {
  return measured.platform === 'snp' ? measured.measurement : measured.registers.join('')
}

function requireEqual(measured: string | undefined, built: string): void {
  if (measured !== built) throw new EvidenceRefused('provenance', ['record_measurement'])
}
