import type { Bytes } from '../../protocol/bytes.ts'
import { settleTools, type Context } from '../context.ts'
import type { TranscriptionPlan } from '../routing/plan-transcription.ts'
import type { Admission } from '../settle/admit.ts'
import { release } from '../settle/release.ts'
import type { TranscriptionRequest } from './request.ts'

/** An admitted transcription request. */
export interface AdmittedTranscription {
  readonly context: Context
  readonly ask: TranscriptionRequest
  readonly plan: TranscriptionPlan
  readonly admission: Admission
  readonly receipt: boolean
  /** Length of the file by the router's own measurement; undefined where it could not be measured. */
  readonly measuredSeconds: number | undefined
  /** The client's body bytes as received; the file is a view of them. */
  readonly clientRequest: Bytes
}

/** Gives the reservation of a request that costs nothing back. */
export function releaseAdmission({ context, admission }: AdmittedTranscription): Promise<void> {
  return release(context.requestId, settleTools(context, admission.customerId))
}
