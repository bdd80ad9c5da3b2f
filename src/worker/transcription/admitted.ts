import type { Bytes } from '../../protocol/bytes.ts'
import type { Constraints } from '../../protocol/constraints.ts'
import type { Context } from '../context.ts'
import type { Once } from '../idempotency/once.ts'
import type { TranscriptionPlan } from '../routing/plan-transcription.ts'
import type { Admission } from '../settle/admit.ts'
import type { TranscriptionRequest } from './request.ts'

/** An admitted transcription request. */
export interface AdmittedTranscription {
  readonly context: Context
  readonly parsed: TranscriptionRequest
  readonly plan: TranscriptionPlan
  /** What the provider must meet, by the request and by its key. */
  readonly constraints: Constraints | undefined
  readonly admission: Admission
  readonly receipt: boolean
  /** Of a request with an `Idempotency-Key`. */
  readonly once: Once | undefined
  /** The client's body bytes as received; the file is a view of them. */
  readonly clientRequest: Bytes
}
