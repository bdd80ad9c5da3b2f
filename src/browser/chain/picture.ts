import type { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import type { Check } from '../../verify/check.ts'
import type { BoxDefinition } from './box-definition.ts'
import { PICTURES, type PictureKind } from './boxes.ts'

/**
 * The state of a box. `holds`: its own checks and all boxes that it depends on hold. `simulated`: the same, on a
 * simulated platform, which proves nothing. `failed`: one of its own checks failed. `moot`: a box that it depends on
 * does not hold, so its own checks prove nothing. `open`: there was nothing to check.
 */
export type BoxState = 'holds' | 'simulated' | 'failed' | 'moot' | 'open'

export interface Box extends BoxDefinition {
  readonly state: BoxState
  /** Its own checks, as the verifier made them. */
  readonly findings: readonly Check[]
  /** Why its document cannot be parsed. */
  readonly unreadable?: string
}

/** The verifier's results for one router or one receipt. */
export interface Findings {
  readonly checks: readonly Check[]
  /** Documents that could not be parsed. */
  readonly malformed: readonly Pick<MalformedEvidence, 'document' | 'reason'>[]
  /** Documents that were parsed, for boxes without other checks. */
  readonly read: readonly string[]
}

/**
 * Assigns every check to its box and shows where a proof breaks: a box is red only for a fault of its own, and boxes
 * that depend on a broken one are moot, so that one fault turns one box red.
 */
export function drawPicture(kind: PictureKind, { checks, malformed, read }: Findings): Box[] {
  const definitions: readonly BoxDefinition[] = PICTURES[kind]
  const findings = Map.groupBy(checks, ({ name }) => boxOfCheck(definitions, name))
  const unreadable = new Map(
    malformed.map((one) => [boxOfDocument(definitions, one), `${one.document}: ${one.reason}`]),
  )
  const states = new Map<string, BoxState>()
  const stateOf = (box: BoxDefinition): BoxState => {
    const known = states.get(box.id)
    if (known !== undefined) return known
    const beneath = definitions.filter(({ id }) => box.restsOn.includes(id)).map(stateOf)
    const own = {
      checks: findings.get(box.id) ?? [],
      unreadable: unreadable.has(box.id),
      read: read.some((document) => box.documents?.includes(document)),
      decisive: box.decisive,
    }
    const state = judgeBox(own, beneath)
    states.set(box.id, state)
    return state
  }
  return definitions.map((box) => {
    const reason = unreadable.get(box.id)
    return {
      ...box,
      state: stateOf(box),
      findings: findings.get(box.id) ?? [],
      ...(reason === undefined ? {} : { unreadable: reason }),
    }
  })
}

interface OwnFindings {
  readonly checks: readonly Check[]
  readonly unreadable: boolean
  readonly read: boolean
  readonly decisive: BoxDefinition['decisive']
}

function judgeBox(
  { checks, unreadable, read, decisive }: OwnFindings,
  beneath: readonly BoxState[],
): BoxState {
  if (beneath.some((state) => state === 'failed' || state === 'moot')) return 'moot'
  if (unreadable || checks.some(({ ok }) => !ok)) return 'failed'
  if (checks.length === 0 && !read) return 'open'
  const decided = decisive?.every((name) => checks.some((check) => check.name === name)) ?? true
  if (!decided) return 'open'
  const simulated = checks.some(({ name }) => name.endsWith('simulated_platform'))
  return simulated || beneath.includes('simulated') ? 'simulated' : 'holds'
}

const ROUTER_HOP = 'router_attestation.'
const PROVIDER_HOP = /^(inference|provider)_attestation\./

/** The id of the box that a check belongs to; undefined when there is none. */
export function boxOfCheck(
  definitions: readonly BoxDefinition[],
  name: string,
): string | undefined {
  if (PROVIDER_HOP.test(name)) return 'provider'
  const plain = name.startsWith(ROUTER_HOP) ? name.slice(ROUTER_HOP.length) : name
  return definitions.find(({ checks }) => checks.some((check) => check === plain))?.id
}

/** The box of a document that cannot be parsed, or of a malformed member of the envelope. */
function boxOfDocument(
  definitions: readonly BoxDefinition[],
  { document, reason }: Findings['malformed'][number],
): string | undefined {
  const member = /^\w+/.exec(reason)?.[0] ?? ''
  const ofMember =
    document === 'attestation envelope'
      ? definitions.find(({ members }) => members?.includes(member))
      : undefined
  return (ofMember ?? definitions.find(({ documents }) => documents?.includes(document)))?.id
}
