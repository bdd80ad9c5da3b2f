import type { ReportSource } from './report-source.ts'

/**
 * One capture at a time. The firmware handles one request at a time anyway, and a read that the host throttles
 * occupies a thread of Node's small pool for up to a minute, which signing needs too.
 */
export function createQueuedSource(source: ReportSource): ReportSource {
  let last: Promise<unknown> = Promise.resolve()
  return {
    capture(reportData) {
      const capture = last.then(() => source.capture(reportData))
      last = capture.catch(() => {})
      return capture
    },
  }
}
