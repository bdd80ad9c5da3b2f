import { LINK_PATHS } from '../../protocol/link.ts'
import {
  NO_OTHER_WORKERS,
  telemetryAnswerSchema,
  type TelemetryAnswer,
  type TelemetryReport,
} from '../../protocol/telemetry.ts'
import { BOUND_ORIGIN } from './link-calls.ts'

const TIMEOUT_MS = 3_000

interface Binding {
  fetch(url: string, init?: RequestInit): Promise<Response>
}

/**
 * Sends this worker's telemetry to the daemon and returns that of the other workers. Never rejects: a failure of
 * telemetry must not affect requests.
 */
export async function exchangeTelemetry(
  binding: Binding,
  origin: string | undefined,
  report: TelemetryReport,
): Promise<TelemetryAnswer> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const init = { method: 'POST', body: JSON.stringify(report), signal }
    const answer = await binding.fetch(`${origin ?? BOUND_ORIGIN}${LINK_PATHS.telemetry}`, init)
    const json: unknown = await answer.json()
    return telemetryAnswerSchema.safeParse(json).data ?? NO_OTHER_WORKERS
  } catch {
    return NO_OTHER_WORKERS
  }
}
