import { percentileBetween, sumOf, type Sample } from './metrics-text.ts'

/**
 * The changes between two scrapes of the metrics. Rates are per second; durations in milliseconds, null where none were
 * measured.
 */
export interface Point {
  /** Unix seconds. */
  readonly at: number
  readonly requests: number
  readonly refused: number
  readonly failed: number
  readonly tokens: number
  readonly failovers: number
  readonly firstDeltaMedian: number | null
  readonly firstDelta95: number | null
  readonly duration95: number | null
}

/** One hour of scrapes, five seconds apart. */
const MAX_POINTS = 720

interface Scrape {
  readonly at: number
  readonly samples: readonly Sample[]
}

/** Adds a point for the newest scrape; counters that decreased (after a restart) count from zero. */
export function addScrape(
  points: readonly Point[],
  before: Scrape | undefined,
  scrape: Scrape,
): Point[] {
  if (before === undefined || scrape.at <= before.at) return [...points]
  return [...points.slice(1 - MAX_POINTS), pointOf(before, scrape)]
}

function pointOf(before: Scrape, { at, samples }: Scrape): Point {
  const seconds = at - before.at
  const restarted =
    sumOf(samples, 'cmr_requests_total') < sumOf(before.samples, 'cmr_requests_total')
  const from = restarted ? [] : before.samples
  const rate = (name: string, status?: RegExp) => {
    const matches = (labels: Sample['labels']) => status?.test(labels['status'] ?? '') ?? true
    return (sumOf(samples, name, matches) - sumOf(from, name, matches)) / seconds
  }
  const milliseconds = (name: string, fraction: number) => {
    const found = percentileBetween(from, samples, name, fraction)
    return found === undefined ? null : found * 1000
  }
  return {
    at,
    requests: rate('cmr_requests_total'),
    refused: rate('cmr_requests_total', /^4/),
    failed: rate('cmr_requests_total', /^5/),
    tokens: rate('cmr_tokens_total'),
    failovers: rate('cmr_failovers_total'),
    firstDeltaMedian: milliseconds('cmr_first_delta_seconds', 0.5),
    firstDelta95: milliseconds('cmr_first_delta_seconds', 0.95),
    duration95: milliseconds('cmr_request_duration_seconds', 0.95),
  }
}
