import { toBase64 } from '../../protocol/bytes.ts'
import type { Steps } from '../json/steps.ts'
import { BrokenStream } from '../stream/broken-stream.ts'
import { isJsonObject, optionalObjects, type JsonObject } from '../stream/json-object.ts'
import { refuseProviderError } from '../stream/provider-error.ts'
import { readResponseId } from '../stream/response-id.ts'
import { greatestCount } from '../stream/usage-tally.ts'
import type { EmbeddingsRequest } from './request.ts'

/** A provider's vectors, in the order of the inputs and in the requested encoding. */
export interface EmbeddingsAnswer {
  readonly vectors: readonly Vector[]
  /** The provider's count of the input; undefined where it sent none. */
  readonly countedTokens: number | undefined
  readonly providerResponseId: string | undefined
}

/** The properties of the requested vectors. */
type AskedVectors = Pick<EmbeddingsRequest, 'inputs' | 'base64' | 'dimensions'>

/** Numbers, or base64 of little-endian float32. */
type Vector = readonly number[] | string

const FLOAT_BYTES = 4

/**
 * Reads a provider's answer, one vector per step. Some providers support only one encoding, so vectors are converted to the
 * requested one.
 * @throws BrokenStream on an error object, and unless there is one valid vector for each input, all of the same length, and
 *   of the requested length if any
 */
export function* readEmbeddings(
  answer: JsonObject,
  { inputs, base64, dimensions }: AskedVectors,
): Steps<EmbeddingsAnswer> {
  refuseProviderError(answer)
  const entries = optionalObjects(answer['data'])
  const vectors = Array.from<Float32Array | undefined>({ length: inputs })
  const exact = Array.from<Vector>({ length: inputs })
  for (const [position, entry] of entries.entries()) {
    const index = entry['index'] ?? position
    if (typeof index !== 'number' || !(index in vectors) || vectors[index] !== undefined) {
      throw new BrokenStream('malformed')
    }
    const { embedding } = entry
    const vector = vectorOf(embedding)
    vectors[index] = vector
    exact[index] = base64 ? toBase64(littleEndian(vector)) : numbersOf(embedding, vector)
    yield
  }
  const length = dimensions ?? vectors[0]?.length
  if (entries.length !== inputs || !vectors.every((one) => one?.length === length)) {
    throw new BrokenStream('malformed')
  }
  return {
    vectors: exact,
    countedTokens: countedTokens(answer['usage']),
    providerResponseId: readResponseId(answer['id']),
  }
}

/** The provider's count of the input. Every token of an embedding is input, so the total counts where it is the only one. */
function countedTokens(usage: unknown): number | undefined {
  if (!isJsonObject(usage)) return undefined
  const input = greatestCount(usage['prompt_tokens'], usage['input_tokens']) ?? 0
  const counted = input > 0 ? input : (greatestCount(usage['total_tokens']) ?? 0)
  return counted > 0 ? counted : undefined
}

function vectorOf(embedding: unknown): Float32Array {
  if (typeof embedding === 'string') return fromBase64(embedding)
  if (!Array.isArray(embedding) || embedding.length === 0 || !embedding.every(Number.isFinite)) {
    throw new BrokenStream('malformed')
  }
  return finite(Float32Array.from(embedding))
}

/** Refuses infinite numbers, into which those beyond float32 were converted: JSON has none and no client can use them. */
function finite(vector: Float32Array): Float32Array {
  if (!vector.every(Number.isFinite)) throw new BrokenStream('malformed')
  return vector
}

/** The numbers as the provider sent them; those of the vector where it sent base64. */
function numbersOf(embedding: unknown, vector: Float32Array): readonly number[] {
  return Array.isArray(embedding) ? embedding : Array.from(vector)
}

function fromBase64(text: string): Float32Array {
  let binary: string
  try {
    binary = atob(text)
  } catch {
    throw new BrokenStream('malformed')
  }
  if (binary.length === 0 || binary.length % FLOAT_BYTES !== 0) throw new BrokenStream('malformed')
  const view = new DataView(Uint8Array.from(binary, (char) => char.charCodeAt(0)).buffer)
  const vector = new Float32Array(binary.length / FLOAT_BYTES)
  for (let at = 0; at < vector.length; at++) vector[at] = view.getFloat32(at * FLOAT_BYTES, true)
  return finite(vector)
}

function littleEndian(vector: Float32Array): Uint8Array {
  const bytes = new Uint8Array(vector.length * FLOAT_BYTES)
  const view = new DataView(bytes.buffer)
  for (const [at, number] of vector.entries()) view.setFloat32(at * FLOAT_BYTES, number, true)
  return bytes
}
