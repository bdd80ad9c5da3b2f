/** Why a document of a transparency log is refused; part of the interface of `--json`. */
export type TransparencyFault =
  | 'malformed_proof'
  | 'malformed_checkpoint'
  | 'malformed_key'
  | 'unknown_log'
  | 'bad_log_signature'
  | 'bad_cosignature'
  | 'too_few_witnesses'
  | 'stale_checkpoint'
  | 'checkpoint_in_future'
  | 'not_included'
  | 'truncated_tree'
  | 'equivocation'
  | 'inconsistent_tree'

/** A document of a transparency log that proves nothing; `fault` is a stable code, the message is for people. */
export class TransparencyError extends Error {
  readonly fault: TransparencyFault

  constructor(fault: TransparencyFault, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'TransparencyError'
    this.fault = fault
  }
}
