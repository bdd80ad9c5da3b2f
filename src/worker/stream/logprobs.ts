import type { Steps } from '../json/steps.ts'
import { isJsonObject } from './json-object.ts'

/** `logprobs` of a choice as the OpenAI schema requires it, with both lists. */
export interface Logprobs {
  readonly content: readonly TokenLogprob[] | null
  readonly refusal: readonly TokenLogprob[] | null
}

interface TokenLogprob extends Alternative {
  readonly top_logprobs: readonly Alternative[]
}

interface Alternative {
  readonly token: string
  readonly logprob: number
  readonly bytes: readonly number[] | null
}

/** Number of alternatives that are rebuilt between two steps: about a millisecond of work. */
const ALTERNATIVES_AT_ONCE = 2_048

/** Rebuilds `logprobs` from the fields that clients know; null where the provider sent none in this form. */
export function* readLogprobs(value: unknown): Steps<Logprobs | null> {
  if (!isJsonObject(value)) return null
  const content = yield* readTokens(value['content'])
  const refusal = yield* readTokens(value['refusal'])
  return content === null && refusal === null ? null : { content, refusal }
}

function* readTokens(value: unknown): Steps<readonly TokenLogprob[] | null> {
  if (!Array.isArray(value)) return null
  const tokens: TokenLogprob[] = []
  let read = 0
  for (const entry of value) {
    const own = readAlternative(entry)
    if (own === undefined || !isJsonObject(entry)) continue
    const top: unknown = entry['top_logprobs']
    const others: Alternative[] = []
    for (const one of Array.isArray(top) ? top : []) {
      const other = readAlternative(one)
      if (other !== undefined) others.push(other)
      if (++read % ALTERNATIVES_AT_ONCE === 0) yield
    }
    tokens.push({ ...own, top_logprobs: others })
    if (++read % ALTERNATIVES_AT_ONCE === 0) yield
  }
  return tokens
}

function readAlternative(value: unknown): Alternative | undefined {
  if (!isJsonObject(value)) return undefined
  const { token, logprob, bytes } = value
  if (typeof token !== 'string' || typeof logprob !== 'number') return undefined
  return { token, logprob, bytes: isByteList(bytes) ? bytes : null }
}

function isByteList(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((byte) => Number.isInteger(byte))
}
