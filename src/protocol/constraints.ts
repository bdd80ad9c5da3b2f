import * as z from 'zod'
import { hex32 } from './hex-schema.ts'
import { isName } from './selector.ts'

/**
 * The caller's requirements on the provider that receives the request ("Attestation constraints" in docs/api.md). They
 * appear in the body member `attestation`, the header `X-Service-Require`, the header of the link and the receipt claim
 * `constraints`.
 */

/**
 * Strengths of attestation, weakest first. Simulated evidence proves nothing about any machine; genuine hardware under
 * an operating system that is not pinned proves the machine but not the workload (docs/egress.md).
 */
export const STRENGTHS = ['none', 'simulated', 'hardware-os-unpinned', 'hardware'] as const

export type Strength = (typeof STRENGTHS)[number]

/** Maximum number of entries in one list. */
const MAX_ENTRIES = 32

const FORMS = {
  min: z.enum(STRENGTHS),
  providers: z.array(z.string().refine(isName)).min(1).max(MAX_ENTRIES),
  evidence_sha256: z.array(hex32).min(1).max(MAX_ENTRIES),
}

/** Unknown members are errors: a constraint that is not understood must not be dropped. */
export const constraintsSchema = z
  .strictObject({
    min: FORMS.min.optional().describe('The evidence must be at least this strong.'),
    providers: FORMS.providers.optional().describe('The provider must be one of these.'),
    evidence_sha256: FORMS.evidence_sha256
      .optional()
      .describe('The connection must be pinned to one of these pieces of evidence.'),
  })
  .refine((given) => Object.values(given).some((value) => value !== undefined))
  .meta({ minProperties: 1 })

export type Constraints = z.output<typeof constraintsSchema>

/** The proven properties of the provider at the other end of a connection. */
export interface ProvenPeer {
  readonly provider: string
  readonly strength: string
  /** Null without evidence. */
  readonly evidenceSha256: string | null
}

/** The rank of a strength; an unknown one is weaker than all others. */
export function strengthRank(strength: string): number {
  return STRENGTHS.findIndex((known) => known === strength)
}

/** The first constraint that a provider does not meet; undefined where it meets all. */
export function unmetConstraint(
  { min, providers, evidence_sha256: evidence }: Constraints,
  peer: ProvenPeer,
): keyof Constraints | undefined {
  if (min !== undefined && strengthRank(peer.strength) < strengthRank(min)) return 'min'
  if (providers !== undefined && !providers.includes(peer.provider)) return 'providers'
  const pinned = peer.evidenceSha256
  if (evidence !== undefined && (pinned === null || !evidence.includes(pinned))) {
    return 'evidence_sha256'
  }
  return undefined
}

/**
 * The same constraints in normal form, in which they are compared, signed and sent over the link: lists sorted, without
 * duplicates.
 */
export function normalized({
  min,
  providers,
  evidence_sha256: evidence,
}: Constraints): Constraints {
  return {
    ...(min !== undefined && { min }),
    ...(providers !== undefined && { providers: sorted(providers) }),
    ...(evidence !== undefined && { evidence_sha256: sorted(evidence) }),
  }
}

/** Adds the requirement that evidence has at least the strength `min`, where one is given. */
export function withMinimum(
  given: Constraints | undefined,
  min: Strength | null,
): Constraints | undefined {
  if (min === null) return given
  const stronger = strengthRank(given?.min ?? 'none') > strengthRank(min)
  return stronger ? given : { ...given, min }
}

/** Whether every provider that meets `held` also meets `asked`. */
export function isAtLeastAsStrict(held: Constraints, asked: Constraints): boolean {
  return (
    strengthRank(held.min ?? 'none') >= strengthRank(asked.min ?? 'none') &&
    isWithin(held.providers, asked.providers) &&
    isWithin(held.evidence_sha256, asked.evidence_sha256)
  )
}

/** The compact form: `min=hardware; providers=nova,vega; evidence_sha256=<hex>`. */
export function formatConstraints(constraints: Constraints): string {
  return Object.entries(normalized(constraints))
    .map(([name, value]) => `${name}=${String(value)}`)
    .join('; ')
}

/** Reads the compact form; undefined where it is malformed in any way, including a repeated name. */
export function parseConstraints(text: string): Constraints | undefined {
  const given = new Map<string, unknown>()
  for (const part of text.split(';')) {
    const [, name, value] = /^\s*(\w+)\s*=(.*)$/.exec(part) ?? []
    if (name === undefined || value === undefined || given.has(name)) return undefined
    given.set(name, name === 'min' ? value.trim() : value.split(',').map((one) => one.trim()))
  }
  const read = constraintsSchema.safeParse(Object.fromEntries(given))
  return read.success ? normalized(read.data) : undefined
}

function sorted(values: readonly string[]): string[] {
  return [...new Set(values)].toSorted()
}

function isWithin(
  held: readonly string[] | undefined,
  asked: readonly string[] | undefined,
): boolean {
  if (asked === undefined) return true
  return held !== undefined && held.every((one) => asked.includes(one))
}
