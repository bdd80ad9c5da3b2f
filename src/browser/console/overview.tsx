import type { Point } from './history.ts'
import { Plot, type Curve } from './plot.tsx'

const TRAFFIC: readonly Curve[] = [
  { label: 'all', of: 'requests', color: '--accent' },
  { label: 'refused (4xx)', of: 'refused', color: '--warn' },
  { label: 'failed (5xx)', of: 'failed', color: '--bad' },
]
const TIMES: readonly Curve[] = [
  { label: 'first delta, median', of: 'firstDeltaMedian', color: '--good' },
  { label: 'first delta, 95 %', of: 'firstDelta95', color: '--accent' },
  { label: 'whole request, 95 %', of: 'duration95', color: '--warn' },
]
const TOKENS: readonly Curve[] = [{ label: 'settled', of: 'tokens', color: '--good' }]
const FAILOVERS: readonly Curve[] = [
  { label: 'to another model', of: 'failovers', color: '--warn' },
]

/** The metrics since this page was opened, for at most an hour. */
export function Overview({ points }: { readonly points: readonly Point[] }) {
  return (
    <section class="panel" aria-label="Overview">
      <h2>Overview</h2>
      <p class="hint">
        Since this page was opened, at most an hour, as counted by the worker that answers. Longer
        history is for the monitoring that scrapes <code>/admin/metrics</code>.
      </p>
      {points.length === 0 && <p class="working">The first figures appear in five seconds.</p>}
      <div class="plots">
        <Plot title="Requests" unit="per second" curves={TRAFFIC} points={points} />
        <Plot title="Times" unit="milliseconds" curves={TIMES} points={points} />
        <Plot title="Tokens" unit="per second" curves={TOKENS} points={points} />
        <Plot title="Failovers" unit="per second" curves={FAILOVERS} points={points} />
      </div>
    </section>
  )
}
