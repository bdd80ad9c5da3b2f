import * as z from 'zod'
import {
  constraintsSchema,
  normalized,
  parseConstraints,
  type Constraints,
} from '../protocol/constraints.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import type { OutgoingRequest } from './transport.ts'

/** Also the name of the receipt's check. */
const DOCUMENT = 'constraints'
const HEADER = 'x-service-require'

const carrierSchema = z.looseObject({ attestation: z.unknown().optional() })

/**
 * Reads what a request requires of its provider ("Attestation constraints" in docs/api.md), so that its receipt can be
 * compared with it: the header `X-Service-Require`, and the member or form field `attestation`.
 * @throws MalformedEvidence when it cannot be read: no honest router answers such a request
 */
export async function requestedConstraints(
  request: Pick<OutgoingRequest, 'headers' | 'body'>,
): Promise<Constraints | undefined> {
  const text = request.headers.get(HEADER)
  const byHeader = text === null ? undefined : parseConstraints(text)
  if (text !== null && byHeader === undefined) throw unreadable(`the header ${HEADER}`)
  const member = await memberOf(request).catch(() => {
    throw unreadable('the body')
  })
  if (member === undefined || member === null) return byHeader
  const read = constraintsSchema.safeParse(member)
  if (!read.success) throw unreadable('the member "attestation"')
  const byBody = normalized(read.data)
  if (byHeader === undefined || JSON.stringify(byHeader) === JSON.stringify(byBody)) return byBody
  throw new MalformedEvidence(DOCUMENT, 'header and body of the request require different things')
}

async function memberOf({ body, headers }: Pick<OutgoingRequest, 'headers' | 'body'>) {
  if (body === undefined || body.length === 0) return undefined
  const type = headers.get('content-type') ?? ''
  if (!/^multipart\/form-data\b/i.test(type)) {
    const given: unknown = JSON.parse(new TextDecoder().decode(body))
    return carrierSchema.parse(given).attestation
  }
  const form = await new Response(body, { headers: { 'content-type': type } }).formData()
  const field = form.get('attestation')
  if (field === null) return undefined
  const given: unknown = JSON.parse(z.string().parse(field))
  return given
}

function unreadable(what: string): MalformedEvidence {
  return new MalformedEvidence(DOCUMENT, `${what} of the request requires what cannot be read`)
}
