import { createSerialQueue } from '../../protocol/serial-queue.ts'
import type { ReportSource } from './report-source.ts'

/**
 * Captures one report at a time. The firmware handles one request at a time anyway. A read that the host throttles
 * occupies a thread of Node's small thread pool for up to a minute, and other work of the daemon needs that pool.
 */
export function createQueuedSource(source: ReportSource): ReportSource {
  const inTurn = createSerialQueue()
  return { capture: (reportData) => inTurn(() => source.capture(reportData)) }
}
