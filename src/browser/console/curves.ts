import * as z from 'zod'
import { count, duration, euros } from './format.ts'

export interface Curve {
  readonly label: string
  /** The name of the style sheet's colour variable. */
  readonly color: string
  /** One value for each time; null when there is none. */
  readonly values: readonly (number | null)[]
  /** The text shown beside its label. */
  readonly total: string
}

const percentiles = z.object({ p50: z.number(), p95: z.number(), p99: z.number() }).nullable()

export const historySchema = z.object({
  step_seconds: z.number(),
  data: z.array(
    z.object({
      at: z.string(),
      requests: z.number(),
      errors: z.record(z.string(), z.number()),
      first_delta_ms: percentiles,
      duration_ms: percentiles,
      prompt_tokens: z.number(),
      completion_tokens: z.number(),
      cost_eur: z.string(),
      failovers: z.number(),
    }),
  ),
})

export type History = z.output<typeof historySchema>
type Step = History['data'][number]

/** The maximum number of error codes with a curve of their own; one more curve sums up the rest. */
const MAX_CODES = 4
const COLORS = ['--bad', '--warn', '--accent', '--plum', '--idle'] as const

export const timesOf = ({ data }: History): readonly number[] =>
  data.map(({ at }) => Date.parse(at) / 1000)

const sum = (values: readonly number[]) => values.reduce((one, other) => one + other, 0)

function counted(label: string, color: string, values: readonly number[]): Curve {
  return { label, color, values, total: count(sum(values)) }
}

/**
 * The number of requests in a time step that were answered with an error of a status class.
 * @param first the first digit of the status
 */
export function errorsOf({ errors }: Step, first: '4' | '5'): number {
  return sum(
    Object.entries(errors).flatMap(([code, value]) => (code.startsWith(first) ? value : [])),
  )
}

export function requestCurves({ data }: History): readonly Curve[] {
  return [
    counted(
      'all',
      '--accent',
      data.map(({ requests }) => requests),
    ),
    counted(
      'refused (4xx)',
      '--warn',
      data.map((step) => errorsOf(step, '4')),
    ),
    counted(
      'failed (5xx)',
      '--bad',
      data.map((step) => errorsOf(step, '5')),
    ),
  ]
}

/** A curve for each of the most frequent codes, and one for all others. */
export function errorCurves({ data }: History): readonly Curve[] {
  const totals = new Map<string, number>()
  for (const { errors } of data) {
    for (const [code, value] of Object.entries(errors)) {
      totals.set(code, (totals.get(code) ?? 0) + value)
    }
  }
  const codes = [...totals].toSorted(([, one], [, other]) => other - one).map(([code]) => code)
  const own = codes.slice(0, MAX_CODES)
  const rest = codes.slice(MAX_CODES)
  const curves = own.map((code, index) =>
    counted(
      code,
      COLORS[index] ?? '--idle',
      data.map(({ errors }) => errors[code] ?? 0),
    ),
  )
  if (rest.length === 0) return curves
  const others = data.map(({ errors }) => sum(rest.map((code) => errors[code] ?? 0)))
  return [...curves, counted('others', '--idle', others)]
}

export function timeCurves(
  { data }: History,
  name: 'first_delta_ms' | 'duration_ms',
): readonly Curve[] {
  return (['p50', 'p95', 'p99'] as const).map((percentile, index) => {
    const values = data.map((step) => step[name]?.[percentile] ?? null)
    const newest = values.findLast((value) => value !== null)
    const label = { p50: 'median', p95: '95 %', p99: '99 %' }[percentile]
    const color = ['--good', '--accent', '--warn'][index] ?? '--idle'
    return { label, color, values, total: newest == null ? '–' : duration(newest) }
  })
}

export function tokenCurves({ data }: History): readonly Curve[] {
  return [
    counted(
      'in',
      '--accent',
      data.map((step) => step.prompt_tokens),
    ),
    counted(
      'out',
      '--good',
      data.map((step) => step.completion_tokens),
    ),
  ]
}

export function spendCurves({ data }: History): readonly Curve[] {
  const values = data.map(({ cost_eur: cost }) => Number(cost))
  return [{ label: 'billed', color: '--good', values, total: euros(sum(values)) }]
}

export function failoverCurves({ data }: History): readonly Curve[] {
  return [
    counted(
      'to another model',
      '--warn',
      data.map(({ failovers }) => failovers),
    ),
  ]
}
