/**
 * Detects names that a caller may have meant as `attestation` or `X-Service-Require`. Other unknown members of a
 * request are dropped or forwarded, but a misspelt requirement on the provider must be an error.
 */

const MEMBER = 'attestation'

const HEADER = 'x-service-require'
const HEADER_PREFIX = 'x-service-'
/**
 * Quick test before the full comparison, because every header of every request is checked: a name with two wrong
 * letters still contains one of these, unless each of its words has a wrong letter.
 */
const HEADER_PARTS = /serv|req/

/** No API that clients of this service are written for has a member whose name contains this. */
const STEM = 'attest'

/**
 * Names that belong inside `attestation`, other names of the constraints (in the header and in the receipt), and words
 * for what they are about.
 */
const MISPLACED: ReadonlySet<string> = new Set([
  'min',
  'providers',
  'evidencesha256',
  'require',
  'xservicerequire',
  'constraints',
  'confidential',
])

/** Only this much of a long name is compared. */
const MAX_CHARACTERS = 128

/** How many letters may be missing, extra or wrong. */
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

/** Whether at most `edits` insertions, deletions or replacements of letters turn one text into the other. */
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
