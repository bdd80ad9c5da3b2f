import { runAtOnce } from '../json/steps.ts'
import { decodeAnswer, parseJsonObject } from './json-object.ts'
import { readProviderAnswer, type ProviderAnswer } from './provider-answer.ts'
import type { ReadOptions } from './provider-stream.ts'

/**
 * Reads the bytes of a provider's whole answer in one go; only for answers of up to about 64 KiB.
 * @throws BrokenStream on an answer that cannot be passed on
 */
export function readSmallAnswer(bytes: Uint8Array, options: ReadOptions): ProviderAnswer {
  return runAtOnce(readProviderAnswer(parseJsonObject(decodeAnswer(bytes)), options))
}
