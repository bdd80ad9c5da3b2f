/**
 * Input that cannot be parsed: wrong length, bad encoding, a broken structure. (A document that is well-formed but
 * wrong is a failed check, not an exception.)
 *
 * What to do: request the evidence again; nothing can be said about it.
 */
export class MalformedEvidence extends Error {
  /** The kind of document, for instance `SNP report`. */
  readonly document: string
  readonly reason: string

  constructor(document: string, reason: string) {
    super(`malformed ${document}: ${reason}`)
    this.name = 'MalformedEvidence'
    this.document = document
    this.reason = reason
  }
}
