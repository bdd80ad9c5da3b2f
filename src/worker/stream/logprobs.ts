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

/** Rebuilds `logprobs` from the fields that clients know; null where the provider sent none in this form. */
export function readLogprobs(value: unknown): Logprobs | null {
  if (!isJsonObject(value)) return null
  const content = readTokens(value['content'])
  const refusal = readTokens(value['refusal'])
  return content === null && refusal === null ? null : { content, refusal }
}

function readTokens(value: unknown): readonly TokenLogprob[] | null {
  if (!Array.isArray(value)) return null
  return value.flatMap((entry: unknown) => {
    const own = readAlternative(entry)
    if (own === undefined || !isJsonObject(entry)) return []
    const top: unknown = entry['top_logprobs']
    const others = Array.isArray(top) ? top.flatMap((one) => readAlternative(one) ?? []) : []
    return [{ ...own, top_logprobs: others }]
  })
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
