import { z } from 'zod'
import { toHex, type Bytes } from '../protocol/bytes.ts'
import { sha256Hex } from '../protocol/digest.ts'
import { ENVELOPE_SCHEMA, envelopeSchema, type Envelope } from '../protocol/envelope.ts'
import type { Es256Jwk } from '../protocol/jwk.ts'
import { readDocument } from '../protocol/read-document.ts'
import type { AttestationBlock } from '../protocol/receipt.ts'
import { parseStrictJson } from '../protocol/strict-json.ts'
import { firstFault, judge, prefixed, type Check } from './check.ts'
import { verifyEnvelope } from './envelope.ts'
import { verifyEnvelopeHardware, type HardwareResult } from './envelope-hardware.ts'
import type { SnpOptions } from './snp/verify-snp.ts'
import { verifyTrustBundle } from './trust-bundle.ts'

export interface HopOptions extends Omit<SnpOptions, 'policy'> {
  /** The release root of whoever runs this hop; without it only the hardware is checked. */
  readonly rootJwk: Es256Jwk | undefined
  readonly environments: readonly string[]
  /** Evidence that receipts refer to, by SHA-256 in lowercase hex. */
  readonly evidence: ReadonlyMap<string, Bytes>
}

export interface HopResult {
  readonly checks: readonly Check[]
  /** What could not be judged, and why. */
  readonly notes: readonly string[]
  readonly envelope?: Envelope
}

const referenceSchema = z.strictObject({ sha256: z.string(), bytes: z.number() })

/**
 * Verifies a hop of a receipt again from its evidence, as of `options.now`. A receipt tells of the past, so an
 * envelope need not be fresh. Throws `MalformedEvidence`.
 */
export async function checkHop(
  name: string,
  block: AttestationBlock,
  options: HopOptions,
): Promise<HopResult> {
  const fault = block.verified ? undefined : 'it had not verified when the receipt was signed'
  const verified = judge('hop_verified', fault, `${block.verification_mode}, ${block.tee ?? ''}`)
  const { checks: found, evidence, note } = await findEvidence(name, block, options.evidence)
  if (evidence === undefined) {
    return { checks: prefixed(name, [verified, ...found]), notes: note === undefined ? [] : [note] }
  }
  const envelope = readDocument(envelopeSchema, evidence, `evidence of ${name}`)
  const again = await verifyAgain(name, block, envelope, options)
  const consistent = checkConsistent(block, envelope, again.report?.measurement)
  const checks = prefixed(name, [verified, ...found, consistent, ...again.checks])
  const simulated = again.chain?.simulated === true
  const told = simulated ? [`${name}: a simulated platform, no hardware stands behind it`] : []
  return { checks, notes: [...again.notes, ...told], envelope }
}

interface FoundEvidence {
  readonly checks: readonly Check[]
  readonly evidence?: unknown
  readonly note?: string
}

async function findEvidence(
  name: string,
  { evidence_raw: raw, verification_mode: mode }: AttestationBlock,
  held: ReadonlyMap<string, Bytes>,
): Promise<FoundEvidence> {
  const reference = referenceSchema.safeParse(raw)
  if (!reference.success) return recognise(name, mode, raw, [])
  const { sha256, bytes: size } = reference.data
  const bytes = held.get(sha256)
  if (bytes === undefined) {
    return { checks: [], note: `${name}: its evidence ${sha256} is not at hand` }
  }
  const same = bytes.length === size && (await sha256Hex(bytes)) === sha256
  const check = judge('hop_evidence', same ? undefined : 'not the bytes that were signed', sha256)
  if (!same) return { checks: [check] }
  return recognise(name, mode, parseStrictJson(bytes, `evidence of ${name}`), [check])
}

/** Other kinds of evidence are judged by the router's own adapters alone. */
function recognise(
  name: string,
  mode: string,
  evidence: unknown,
  checks: readonly Check[],
): FoundEvidence {
  const envelope = z.looseObject({ schema: z.literal(ENVELOPE_SCHEMA) }).safeParse(evidence).success
  if (envelope) return { checks, evidence }
  return { checks, note: `${name}: evidence of mode ${mode} is not verified again here` }
}

async function verifyAgain(
  name: string,
  block: AttestationBlock,
  envelope: Envelope,
  options: HopOptions,
): Promise<HardwareResult & { notes: string[] }> {
  const { rootJwk, environments, evidence: _, ...snp } = options
  if (rootJwk === undefined) {
    const notes = [`${name}: no release root given, so only the hardware was verified`]
    return { ...(await verifyEnvelopeHardware(envelope, snp)), notes }
  }
  const bundle = await verifyTrustBundle(block.trust_bundle_jws ?? '', rootJwk, {
    now: options.now,
    environments,
  })
  if (bundle.bundle === undefined) {
    return { ...bundle, notes: [`${name}: not judged further, its trust bundle is refused`] }
  }
  const trust = { bundle: bundle.bundle, rootJwk }
  const result = await verifyEnvelope(envelope, { ...snp, trust })
  return { ...result, checks: [...bundle.checks, ...result.checks], notes: [] }
}

function checkConsistent(
  block: AttestationBlock,
  envelope: Envelope,
  measured: Bytes | undefined,
): Check {
  const { workload_identity_tag: tag, workload_identity_manifest_jws: manifest } = envelope
  const measurement = measured && toHex(measured)
  const fault = firstFault(
    measurement !== undefined &&
      block.measurement !== measurement &&
      'the measurement is not that of the evidence',
    (block.workload_identity_tag ?? tag) !== tag && 'the identity tag is not that of the evidence',
    (block.workload_identity_manifest_jws ?? manifest) !== manifest &&
      'the manifest is not that of the evidence',
  )
  return judge('hop_consistent', fault, measurement ?? '')
}
