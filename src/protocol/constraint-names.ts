/**
 * Names that a caller may have written for `attestation` or `X-Service-Require`. Other unknown members of a request are
 * left out or forwarded; a requirement on the provider that is not understood must be an error instead.
 */

const MEMBER = 'attestation'

const HEADER = 'x-service-require'
const HEADER_PREFIX = 'x-service-'
/** Two wrong letters leave one of these in it, unless each of its words has one. Every request's headers are looked at. */
const HEADER_PARTS = /serv|req/

/** No interface that clients of this service are written for has a member with this in its name. */
const STEM = 'attest'

/** What belongs into `attestation`, what the header and the receipt call it, and what it is about. */
const MISPLACED: ReadonlySet<string> = new Set([
  'min',
  'providers',
  'evidencesha256',
  'require',
  'xservicerequire',
  'constraints',
  'confidential',
])

/** Of a name of megabytes only so much is looked at. */
const MAX_CHARACTERS = 128

/** Letters that may be missing, too many or wrong. */
const MAX_EDITS = 2

/** Whether a member of a body, or a field of a form, seems to be meant as `attestation`. */
export function isMistakenMember(name: string): boolean {
  if (name === MEMBER) return false
  const letters = lettersOf(name)
  return letters.includes(STEM) || MISPLACED.has(letters) || isNear(letters, MEMBER)
}

/** Whether a header seems to be meant as `X-Service-Require`; `name` is in lower case. */
export function isMistakenHeader(name: string): boolean {
  if (name === HEADER || !HEADER_PARTS.test(name)) return false
  if (isNear(lettersOf(name), lettersOf(HEADER))) return true
  if (!name.startsWith(HEADER_PREFIX)) return false
  const own = name.slice(HEADER_PREFIX.length)
  return own === MEMBER || own.includes('requir') || isMistakenMember(own)
}

function lettersOf(name: string): string {
  return name
    .slice(0, MAX_CHARACTERS)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
}

function isNear(text: string, meant: string): boolean {
  return Math.abs(text.length - meant.length) <= MAX_EDITS && isWithin(MAX_EDITS, text, meant)
}

/** Whether so many letters added, removed or replaced make one text of the other. */
function isWithin(edits: number, left: string, right: string): boolean {
  let same = 0
  while (same < left.length && left[same] === right[same]) same += 1
  const [one, other] = [left.slice(same), right.slice(same)]
  if (one === '' || other === '') return Math.max(one.length, other.length) <= edits
  if (edits === 0) return false
  return (
    isWithin(edits - 1, one.slice(1), other.slice(1)) ||
    isWithin(edits - 1, one.slice(1), other) ||
    isWithin(edits - 1, one, other.slice(1))
  )
}
