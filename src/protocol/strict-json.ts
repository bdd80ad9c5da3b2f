import { fromUtf8 } from './bytes.ts'
import { MalformedEvidence } from './malformed-evidence.ts'

/** Deeper documents are refused, so that no later reader can run out of stack. */
const MAX_DEPTH = 64

/**
 * Parses signed JSON (RFC 8259). Repeated members are refused, because two readers could disagree on what was signed;
 * so are `__proto__` members, nesting beyond 64 levels, or beyond `maxDepth`, and malformed UTF-8.
 * @throws MalformedEvidence when the input is refused; the message names the document
 */
export function parseStrictJson(
  input: string | Uint8Array,
  document: string,
  maxDepth = MAX_DEPTH,
): unknown {
  const text = typeof input === 'string' ? input : decode(input, document)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new MalformedEvidence(document, 'not JSON')
  }
  const fault = findFault(text, maxDepth)
  if (fault !== undefined) throw new MalformedEvidence(document, fault)
  return value
}

function decode(bytes: Uint8Array, document: string): string {
  try {
    return fromUtf8(bytes)
  } catch {
    throw new MalformedEvidence(document, 'not UTF-8')
  }
}

/** Matches the tokens that matter here: brackets, and whole strings with the colon that makes them names. */
const TOKEN = /[{}[\]]|"[^"\\]*(?:\\.[^"\\]*)*"(?<colon>[ \t\r\n]*:)?/g

/** Scans text that is known to be JSON; the stack holds the names seen in each open object. */
function findFault(text: string, maxDepth: number): string | undefined {
  const open: Set<string>[] = []
  for (const match of text.matchAll(TOKEN)) {
    const token = match[0]
    if (token === '{' || token === '[') {
      if (open.push(new Set()) > maxDepth) return `nested deeper than ${maxDepth}`
    } else if (token === '}' || token === ']') {
      open.pop()
    } else if (match.groups?.['colon'] !== undefined) {
      const name: unknown = JSON.parse(token.slice(0, -match.groups['colon'].length))
      const seen = open.at(-1)
      if (typeof name !== 'string' || name === '__proto__') return 'forbidden member name'
      if (seen?.has(name)) return 'duplicate member name'
      seen?.add(name)
    }
  }
  return undefined
}
