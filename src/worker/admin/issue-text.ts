import type { z } from 'zod'

type Issue = z.core.$ZodRawIssue

/** Descriptions of the expected types, by their names in a schema. */
const KINDS: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  int: 'a whole number',
  number: 'a number',
  object: 'an object',
  record: 'an object',
  string: 'text',
}

const quoted = (value: unknown) => JSON.stringify(value)

/** The units of size limits, by the type of the value. */
const UNITS: Readonly<Record<string, readonly [one: string, more: string]>> = {
  array: ['entry', 'entries'],
  string: ['character', 'characters'],
}

function limit(words: string, bound: unknown, origin: string): string {
  const units = UNITS[origin]
  if (units === undefined) return `must be ${words} ${String(bound)}`
  return `must have ${words} ${String(bound)} ${units[bound === 1 ? 0 : 1]}`
}

/** What is wrong with a value; undefined where the schema has a message of its own. */
function reasonOf(issue: Issue): string | undefined {
  if (issue.code === 'too_small') return limit('at least', issue.minimum, issue.origin)
  if (issue.code === 'too_big') return limit('at most', issue.maximum, issue.origin)
  if (issue.code === 'invalid_value') {
    const wanted = `must be ${issue.values.map(quoted).join(' or ')}`
    return issue.input === undefined ? `is missing: it ${wanted}` : wanted
  }
  if (issue.code !== 'invalid_type') return undefined
  if (issue.input === undefined) return 'is missing'
  return `must be ${KINDS[issue.expected] ?? issue.expected}`
}

/** A readable sentence about what is wrong with a body; undefined leaves the message to the schema. */
export function issueText(issue: Issue): string | undefined {
  if (issue.code === 'unrecognized_keys') {
    return `${issue.keys.map(quoted).join(', ')}: there is no such member.`
  }
  const reason = reasonOf(issue)
  const name = (issue.path ?? []).map(String).join('.')
  return reason && `${name === '' ? 'The body' : quoted(name)} ${reason}.`
}
