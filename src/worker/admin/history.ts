import { z } from 'zod'
import { formatNano } from '../../protocol/money.ts'
import type { AdminOperation } from '../auth/admin-token.ts'
import { readParameter, type ParameterForm } from '../http/query.ts'
import { json } from '../http/reply.ts'
import { percentileOf, type Series } from '../history/series.ts'
import { readSteps, type HistoryRange, type Step } from '../history/store.ts'
import { asAdmin } from './as-admin.ts'

const DEFAULT_HOURS = 24
const MAX_HOURS = 90 * 24

const HOURS: ParameterForm<number> = {
  expected: `a whole number from 1 to ${MAX_HOURS}`,
  read: (text) => {
    const hours = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0
    return hours >= 1 && hours <= MAX_HOURS ? hours : undefined
  },
  schema: { type: 'integer', minimum: 1, maximum: MAX_HOURS },
}

/** The widths of stored rows and of shown steps by the length of the range: never more than about four hundred steps. */
const RESOLUTIONS: readonly {
  readonly upToHours: number
  readonly widthSeconds: number
  readonly stepSeconds: number
}[] = [
  { upToHours: 6, widthSeconds: 60, stepSeconds: 60 },
  { upToHours: 14 * 24, widthSeconds: 3_600, stepSeconds: 3_600 },
  { upToHours: MAX_HOURS, widthSeconds: 3_600, stepSeconds: 6 * 3_600 },
]

const percentiles = z
  .object({ p50: z.int(), p95: z.int(), p99: z.int() })
  .nullable()
  .describe('Milliseconds, as exact as the buckets are; null where nothing was timed.')

const stepSchema = z.object({
  at: z.iso.datetime(),
  requests: z.int().describe('Answered requests of the endpoints that take API keys.'),
  errors: z
    .record(z.string(), z.int())
    .describe('Those answered with an error, by status and code.'),
  first_delta_ms: percentiles,
  duration_ms: percentiles,
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  cost_eur: z.string(),
  failovers: z.int(),
})

type StepView = z.output<typeof stepSchema>

export const HISTORY_OPERATION: AdminOperation = {
  summary: 'Show what the router did over time, in minutes, hours or quarters of a day',
  tag: 'Admin',
  scope: 'read',
  query: {
    hours: { ...HOURS, description: `How far back: ${DEFAULT_HOURS}, at most ${MAX_HOURS}.` },
  },
  answer: {
    'application/json': {
      name: 'History',
      schema: z.object({ step_seconds: z.int(), data: z.array(stepSchema) }),
    },
  },
  errors: ['invalid_parameter'],
}

/** GET /admin/history: the counts of all workers, oldest step first and without gaps; the last step is still in progress. */
export const showHistory = asAdmin(async (request, { storage, now }) => {
  const query = new URL(request.url).searchParams
  const hours = readParameter(query, 'hours', HOURS) ?? DEFAULT_HOURS
  const range = rangeOf(hours, now())
  const stepMs = range.stepSeconds * 1000
  const steps = await readSteps(storage.directory(), range)
  const count = Math.floor((now() - range.from) / stepMs) + 1
  const data = Array.from({ length: count }, (_, index) => {
    const at = range.from + index * stepMs
    return viewOf(at, steps.get(at) ?? new Map())
  })
  return json({ step_seconds: range.stepSeconds, data })
})

function rangeOf(hours: number, now: number): HistoryRange {
  const found = RESOLUTIONS.find(({ upToHours }) => hours <= upToHours)
  if (found === undefined) throw new Error('internal error: no resolution for this number of hours')
  const { widthSeconds, stepSeconds } = found
  const stepMs = stepSeconds * 1000
  const from = Math.floor((now - hours * 3_600_000) / stepMs) * stepMs + stepMs
  return { widthSeconds, stepSeconds, from }
}

function viewOf(at: number, step: Step): StepView {
  const total = (series: Series) =>
    [...(step.get(series) ?? new Map<string, bigint>()).values()].reduce(
      (sum, value) => sum + value,
      0n,
    )
  const counts = (series: Series) =>
    new Map([...(step.get(series) ?? [])].map(([label, value]) => [label, Number(value)]))
  return {
    at: new Date(at).toISOString(),
    requests: Number(total('requests')),
    errors: Object.fromEntries(
      [...counts('errors')].toSorted(([one], [other]) => (one < other ? -1 : 1)),
    ),
    first_delta_ms: percentilesOf(counts('first_delta')),
    duration_ms: percentilesOf(counts('duration')),
    prompt_tokens: Number(total('prompt_tokens')),
    completion_tokens: Number(total('completion_tokens')),
    cost_eur: formatNano(total('cost')),
    failovers: Number(total('failovers')),
  }
}

function percentilesOf(buckets: ReadonlyMap<string, number>): StepView['duration_ms'] {
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((fraction) => percentileOf(buckets, fraction))
  return p50 == null || p95 == null || p99 == null ? null : { p50, p95, p99 }
}
