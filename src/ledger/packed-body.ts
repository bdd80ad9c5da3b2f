const decoder = new TextDecoder()
const encoder = new TextEncoder()

/** What a worker packed into a body; undefined where it is malformed. */
export function unpackBody<Content>(
  body: Uint8Array,
  unpack: (packed: never) => Content,
): Content | undefined {
  try {
    // The worker is the same program, behind a pinned certificate.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return unpack(JSON.parse(decoder.decode(body)) as never)
  } catch {
    return undefined
  }
}

/** The body of an answer. */
export function packBody(outcomes: readonly unknown[]): Uint8Array<ArrayBuffer> {
  return encoder.encode(JSON.stringify(outcomes))
}
