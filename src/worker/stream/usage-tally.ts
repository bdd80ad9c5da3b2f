import { keepShape } from '../../protocol/keep-shape.ts'
import type { TallyCounts } from '../../protocol/stream-record.ts'
import type { Produced } from './billed-usage.ts'
import { BYTES_PER_TOKEN } from './estimate-text.ts'
import { isJsonObject, type JsonObject } from './json-object.ts'
import type { TokenUsage } from './token-usage.ts'

/** Token counts as an answer shows them; details are undefined where the provider sent none. */
export interface UsageReport {
  readonly promptTokens: number
  readonly completionTokens: number
  /** Prompt tokens read from the provider's cache, and written to it. */
  readonly cachedTokens: number | undefined
  readonly cacheWriteTokens: number | undefined
  /** Completion tokens spent on reasoning. */
  readonly reasoningTokens: number | undefined
}

/**
 * Collects a provider's token counts from every place where the known servers put them. Each count is merged by
 * maximum, because some servers repeat growing totals on every chunk, and sums would bill them many times.
 */
export class UsageTally {
  #prompt = 0
  #completion = 0
  /** The total of prompt and answer, where no count reported them separately; 0: there is none, or text came after it. */
  #total = 0
  #cached: number | undefined
  #cacheWrite: number | undefined
  #reasoning: number | undefined
  #textBytes = 0
  /** Number of deltas with text: most are one token, which may be a single byte. */
  #deltas = 0

  static {
    keepShape(new UsageTally())
  }

  /** A tally that continues from these counts. */
  static of(counts: TallyCounts): UsageTally {
    const tally = new UsageTally()
    tally.#prompt = counts.prompt
    tally.#completion = counts.completion
    tally.#total = counts.total ?? 0
    tally.#cached = counts.cached
    tally.#cacheWrite = counts.cache_write
    tally.#reasoning = counts.reasoning
    tally.#textBytes = counts.uncounted_text_bytes
    return tally
  }

  /** Everything counted so far. */
  get counts(): TallyCounts {
    return {
      prompt: this.#prompt,
      completion: this.#completion,
      total: this.#total || undefined,
      cached: this.#cached,
      cache_write: this.#cacheWrite,
      reasoning: this.#reasoning,
      uncounted_text_bytes: this.uncountedTextBytes,
    }
  }

  /** Adds the bytes of a delta's text that no count covers yet; the next count of completion tokens covers it. */
  addText(bytes: number): void {
    if (bytes === 0) return
    this.#textBytes += bytes
    this.#deltas += 1
    this.#total = 0
  }

  /**
   * Merges one `usage` member.
   * @param isPartial whether it may count only one of several choices: it then covers only as much text as its new tokens
   *   have
   * @returns whether it contained a count; null, a wrong type, and the zeros that some servers send first do not
   */
  take(usage: unknown, isPartial = false): boolean {
    if (!isJsonObject(usage)) return false
    // Zero means that no prompt was counted, because a prompt is never empty.
    const input = greatestCount(usage['prompt_tokens'], usage['input_tokens']) || undefined
    const output = greatestCount(usage['completion_tokens'], usage['output_tokens'])
    const total = greatestCount(usage['total_tokens']) ?? 0
    const prompt = input ?? restOf(total, output)
    const completion = output ?? restOf(total, input)
    if (input === undefined && output === undefined && !isPartial) {
      this.#total = Math.max(this.#total, total)
    }
    if (prompt === 0 && completion === 0) return false
    this.#prompt = Math.max(this.#prompt, prompt)
    const more = Math.max(0, completion - this.#completion)
    this.#completion += more
    if (completion > 0) this.#coverText(isPartial ? more : undefined)
    this.#takeDetails(usage)
    return true
  }

  /** @param tokens covers the text of this many tokens; undefined: all text so far */
  #coverText(tokens: number | undefined): void {
    this.#textBytes =
      tokens === undefined ? 0 : Math.max(0, this.#textBytes - tokens * BYTES_PER_TOKEN)
    this.#deltas = tokens === undefined ? 0 : Math.max(0, this.#deltas - tokens)
  }

  #takeDetails(usage: JsonObject): void {
    const input = detailsOf(usage, 'prompt_tokens_details')
    const output = detailsOf(usage, 'completion_tokens_details')
    this.#cached = greatestCount(
      this.#cached,
      input['cached_tokens'],
      usage['cached_tokens'],
      usage['prompt_cache_hit_tokens'],
      usage['cache_read_input_tokens'],
    )
    this.#cacheWrite = greatestCount(
      this.#cacheWrite,
      input['cache_write_tokens'],
      usage['cache_write_tokens'],
      usage['cache_creation_input_tokens'],
    )
    // Shown to the client, but not billed separately: completion tokens include them.
    this.#reasoning = greatestCount(
      this.#reasoning,
      output['reasoning_tokens'],
      usage['reasoning_tokens'],
    )
  }

  /** The counts to bill; undefined where the provider sent none. The cache counts never exceed the prompt. */
  get tokens(): TokenUsage | undefined {
    if (this.#prompt === 0 && this.#completion === 0) return undefined
    const cachedTokens = Math.min(this.#cached ?? 0, this.#prompt)
    return {
      promptTokens: this.#prompt,
      completionTokens: this.#completion,
      cachedTokens,
      cacheWriteTokens: Math.min(this.#cacheWrite ?? 0, this.#prompt - cachedTokens),
    }
  }

  /**
   * UTF-8 bytes of text added since completion tokens were last counted; billed in addition to the counts. Each delta counts
   * at least the bytes of one token, so that it is billed as one.
   */
  get uncountedTextBytes(): number {
    return Math.max(this.#textBytes, this.#deltas * BYTES_PER_TOKEN)
  }

  /** What the answer is billed by. */
  get produced(): Produced {
    const { tokens: usage, uncountedTextBytes } = this
    return { usage, uncountedTextBytes, totalTokens: this.#total || undefined }
  }

  /** The counts to show to the client: the billed ones, else the provider's. */
  report(billed?: TokenUsage): UsageReport | undefined {
    const tokens = billed ?? this.tokens
    if (tokens === undefined) return undefined
    const { promptTokens, completionTokens, cachedTokens, cacheWriteTokens } = tokens
    const written = this.#cacheWrite !== undefined
    return {
      promptTokens,
      completionTokens,
      cachedTokens: this.#cached !== undefined || written ? cachedTokens : undefined,
      cacheWriteTokens: written ? cacheWriteTokens : undefined,
      reasoningTokens:
        this.#reasoning === undefined ? undefined : Math.min(this.#reasoning, completionTokens),
    }
  }
}

function detailsOf(usage: JsonObject, member: string): JsonObject {
  const details = usage[member]
  return isJsonObject(details) ? details : {}
}

/** Derives one count from the total and the other count; 0 where the other count is unknown. */
function restOf(total: number, other: number | undefined): number {
  return other === undefined ? 0 : Math.max(0, total - other)
}

/** The greatest of the values that are valid counts; undefined if none is. */
export function greatestCount(...values: readonly unknown[]): number | undefined {
  const counts = values.filter(isCount)
  return counts.length === 0 ? undefined : Math.max(...counts)
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}
