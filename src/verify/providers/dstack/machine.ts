import * as z from 'zod'
import { equalBytes, type Bytes } from '../../../protocol/bytes.ts'
import { MalformedEvidence } from '../../../protocol/malformed-evidence.ts'
import { pinsOs, type OsPins, type PolicyOf } from '../../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import { readReport } from '../../snp/report.ts'
import { summarizeSnp } from '../../snp/snp-summary.ts'
import { quoteReportData } from '../../tdx/quote-layout.ts'
import { requireTdxState, summarizeTdx, tdxMeasurement } from '../../tdx/state.ts'
import { storedCollateralSchema } from '../../tdx/stored-collateral.ts'
import { requireConfigId } from './config-id.ts'
import { replayEventLog, type BootFacts } from './event-log.ts'
import { digestMrConfig, readMrConfig } from './mr-config.ts'
import type { DstackMachine } from './report.ts'
import { requireSnpImage } from './snp-image.ts'
import { requireTdxImage } from './tdx-image.ts'
import { OS_UNPINNED, type JudgeOptions } from '../judged-evidence.ts'
import { judgeSnpPlatform, readRevocationList, type SnpPlatformPolicy } from '../snp-platform.ts'

/** The vendor's documents on a machine, in the form kept with receipts. */
export const machineCollateralSchema = z.union([
  storedCollateralSchema,
  z.strictObject({ snp_chain_pem: z.string(), snp_crl_base64: z.string().optional() }),
])
export type MachineCollateral = z.output<typeof machineCollateralSchema>

export type MachinePolicy = OsPins &
  Pick<
    PolicyOf<'dstack' | 'aci'>,
    'mr_config_id' | 'allowed_mr_config_id' | 'tcb_statuses' | 'tdx_policy'
  >

/** What a receipt says of a guest's OS. */
type OsClaims = {
  /** Whether the OS was compared with what the operator pinned. */
  readonly os_pinned: boolean
  /** The hash of its release as the OS itself states it. */
  readonly os_image_hash: string | null
  /** The hash of its release, proven by the measurement; present where the OS is pinned by release. */
  readonly os_image?: string
}

/** What genuine hardware proves about its guest and the guest's operating system. */
export interface JudgedMachine {
  readonly tee: DstackMachine['tee']
  readonly strength: 'hardware' | 'simulated' | typeof OS_UNPINNED
  readonly reportData: Bytes
  /** The names of the checks that held. */
  readonly checks: readonly string[]
  /** Facts stated by the OS; `strength` says whether the OS is pinned. */
  readonly facts: BootFacts
  /** A launch digest of SEV-SNP, or MRTD, RTMR0, RTMR1 and RTMR2 of TDX. */
  readonly measurement: string
  readonly os: OsClaims
  /** When the first of the vendor's documents on the machine expires, in milliseconds since 1970. */
  readonly endsAt: number
  readonly summary:
    | ReturnType<typeof summarizeTdx>
    | Omit<ReturnType<typeof summarizeSnp>, 'measurement'>
}

/** The summary, for receipts, of a machine whose evidence binds a nonce. */
export function summarizeMachine({ summary, facts, os }: JudgedMachine) {
  return {
    ...summary,
    nonce_bound: true,
    compose_hash: facts.composeHash,
    app_id: facts.appId ?? null,
    instance_id: facts.instanceId ?? null,
    ...os,
  }
}

/**
 * Reads REPORT_DATA of a machine that is not verified yet.
 * @throws EvidenceRefused when a quote is of another kind
 * @throws MalformedEvidence when a report cannot be read
 */
export function machineReportData(machine: DstackMachine): Bytes {
  return machine.tee === 'tdx'
    ? quoteReportData(machine.quote)
    : readReport(machine.report).reportData
}

/** Judges a machine of any platform: the hardware, its state, what the guest was started with, and its OS. */
export function judgeMachine(
  machine: DstackMachine,
  collateral: MachineCollateral,
  policy: MachinePolicy & SnpPlatformPolicy,
  options: JudgeOptions,
): Promise<JudgedMachine> {
  return machine.tee === 'tdx'
    ? judgeTdxMachine(machine, collateral, policy, options)
    : judgeSnpMachine(machine, collateral, policy, options)
}

/**
 * Judges a machine with TDX: the quote, the platform's state, the event log, MRCONFIGID, and the OS.
 * @throws EvidenceRefused with the code of the first step that fails
 * @throws MalformedEvidence when something cannot be read
 */
export async function judgeTdxMachine(
  { quote: bytes, eventLog, vmConfig }: Extract<DstackMachine, { tee: 'tdx' }>,
  collateral: MachineCollateral,
  policy: MachinePolicy,
  { verifyQuote, now }: JudgeOptions,
): Promise<JudgedMachine> {
  if ('snp_chain_pem' in collateral) throw otherPlatform()
  const quote = await verifyQuote(bytes, collateral, now)
  requireTdxState(quote, policy)
  const facts = await replayEventLog(eventLog, quote.rtMr[3])
  await requireConfigId(quote.mrConfigId, { facts, mrConfig: vmConfig.mrConfig, policy })
  const measurement = tdxMeasurement(quote)
  const image = await requireOs(policy, measurement, (allowed) =>
    requireTdxImage({ quote, vmConfig, eventLog }, allowed),
  )
  return {
    tee: 'tdx',
    strength: pinsOs(policy) ? 'hardware' : OS_UNPINNED,
    reportData: quote.reportData,
    checks: ['quote', 'debug', 'tcb_status', 'event_log', 'mr_config_id', ...osChecks(policy)],
    facts,
    measurement,
    os: describeOs(policy, facts.osImageHash, image),
    endsAt: quote.endsAt,
    summary: summarizeTdx(quote),
  }
}

/**
 * Judges a machine with SEV-SNP: the report, the platform, HOST_DATA, and the OS. No register is extended after the
 * start, so the events in the attestation prove nothing. The document behind HOST_DATA states the same facts, and the
 * OS starts nothing else.
 */
async function judgeSnpMachine(
  machine: Extract<DstackMachine, { tee: 'sev-snp' }>,
  collateral: MachineCollateral,
  policy: OsPins & SnpPlatformPolicy,
  options: JudgeOptions,
): Promise<JudgedMachine> {
  if (!('snp_chain_pem' in collateral)) throw otherPlatform()
  const documents = {
    chainPem: collateral.snp_chain_pem,
    crl: readRevocationList(collateral.snp_crl_base64),
  }
  const { report, simulated, checks, endsAt } = await judgeSnpPlatform(
    machine.report,
    documents,
    policy,
    options,
  )
  const facts = await requireHostData(report.hostData, machine.mrConfig)
  const { measurement, ...summary } = summarizeSnp(report)
  const image = await requireOs(policy, measurement, (allowed) =>
    requireSnpImage(report.measurement, machine.vmConfig.snpLaunch, allowed),
  )
  const strength = simulated ? 'simulated' : 'hardware'
  return {
    tee: 'sev-snp',
    strength: pinsOs(policy) ? strength : OS_UNPINNED,
    reportData: report.reportData,
    checks: [...checks, 'host_data', ...osChecks(policy)],
    facts,
    measurement,
    os: describeOs(policy, undefined, image),
    endsAt,
    summary,
  }
}

/**
 * Reads the facts from the document whose digest is HOST_DATA.
 * @throws EvidenceRefused `compose_hash` (`host_data`)
 */
async function requireHostData(hostData: Bytes, text: string): Promise<BootFacts> {
  const document = readMrConfig(text)
  if (document === undefined || !equalBytes(hostData, await digestMrConfig(text))) {
    throw new EvidenceRefused('compose_hash', ['host_data'])
  }
  return {
    composeHash: document.compose_hash,
    osImageHash: undefined,
    appId: document.app_id ?? undefined,
    instanceId: document.instance_id ?? undefined,
    keyProvider: undefined,
  }
}

/**
 * Requires an OS that the operator pinned, if any is pinned.
 * @returns the hash of its release, where the OS is pinned by release
 * @throws EvidenceRefused `measurement`
 */
async function requireOs(
  { allowed_measurements: allowed, allowed_os_image_hashes: images }: OsPins,
  measurement: string,
  requireImage: (allowed: readonly string[]) => Promise<string>,
): Promise<string | undefined> {
  if (allowed?.includes(measurement) === false) throw new EvidenceRefused('measurement')
  return images && requireImage(images)
}

function osChecks(pins: OsPins): readonly string[] {
  return pinsOs(pins) ? ['measurement'] : []
}

function describeOs(pins: OsPins, said: string | undefined, proven: string | undefined): OsClaims {
  return {
    os_pinned: pinsOs(pins),
    os_image_hash: said ?? null,
    ...(proven !== undefined && { os_image: proven }),
  }
}

function otherPlatform(): MalformedEvidence {
  return new MalformedEvidence('dstack evidence', 'collateral of another platform')
}
