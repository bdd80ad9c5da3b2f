/**
 * Input that is not even a document of its kind: wrong length, bad encoding, a broken structure. A document
 * that is well-formed and wrong is never an exception but a failed check.
 *
 * What to do: nothing can be said about the evidence; ask the sender for it again.
 */
export class MalformedEvidence extends Error {
  /** What could not be read, for instance `SNP report`. */
  readonly document: string
  readonly reason: string

  constructor(document: string, reason: string) {
    super(`malformed ${document}: ${reason}`)
    this.name = 'MalformedEvidence'
    this.document = document
    this.reason = reason
  }
}
