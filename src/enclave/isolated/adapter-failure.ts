import type { ErrorTrace } from '../../protocol/error-trace.ts'

/** An unexpected error inside an adapter's thread: where it was thrown, without its message. */
export class AdapterFailure extends Error {
  readonly trace: ErrorTrace

  constructor(trace: ErrorTrace) {
    super('an adapter failed')
    this.name = 'AdapterFailure'
    this.trace = trace
  }
}
