import { LINK_PATHS } from '../../protocol/link.ts'
import {
  NO_OTHERS,
  telemetryAnswerSchema,
  type TelemetryAnswer,
  type TelemetryReport,
} from '../../protocol/telemetry.ts'

/** The binding itself decides where a call goes. */
const ANY_ORIGIN = 'https://enclave'

const TIMEOUT_MS = 3_000

interface Binding {
  fetch(url: string, init?: RequestInit): Promise<Response>
}

/** Tells the daemon of this worker's work and learns of the others'. Never rejects: telemetry is no reason to fail. */
export async function exchangeTelemetry(
  binding: Binding,
  origin: string | undefined,
  report: TelemetryReport,
): Promise<TelemetryAnswer> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const init = { method: 'POST', body: JSON.stringify(report), signal }
    const answer = await binding.fetch(`${origin ?? ANY_ORIGIN}${LINK_PATHS.telemetry}`, init)
    const json: unknown = await answer.json()
    return telemetryAnswerSchema.safeParse(json).data ?? NO_OTHERS
  } catch {
    return NO_OTHERS
  }
}
