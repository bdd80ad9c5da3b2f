import { spreadOfValid, type Spread } from './figures.ts'
import type { Report, SystemReport } from './report.ts'
import type { WindowKind } from './windows.ts'

/** One bar: a system, its median, and the range of its windows. */
export interface Bar {
  readonly name: string
  readonly spread: Spread
}

const WIDTH = 720
const LABEL = 130
const ROW = 30
const TOP = 46
const TEXT = 'font-family="system-ui, sans-serif" font-size="13" fill="#222"'

/** A bar chart as SVG: one bar for each system, a whisker from the lowest to the highest window. */
export function barChart(title: string, bars: readonly Bar[]): string {
  const most = Math.max(...bars.map(({ spread }) => spread.max), Number.MIN_VALUE)
  const scale = (value: number) => ((WIDTH - LABEL - 100) * Math.max(0, value)) / most
  const height = TOP + bars.length * ROW + 10
  const rows = bars.map((bar, index) => barRow(bar, TOP + index * ROW, scale))
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}">
<rect width="100%" height="100%" fill="#fff"/>
<text x="10" y="26" ${TEXT} font-weight="600">${title}</text>
${rows.join('\n')}
</svg>
`
}

function barRow({ name, spread }: Bar, y: number, scale: (value: number) => number): string {
  const { median, min, max } = spread
  const colour = name.startsWith('router') ? '#0b7a75' : '#9aa5b1'
  const middle = y + ROW / 2 - 4
  const value = median >= 100 ? median.toFixed(0) : median.toFixed(2)
  return [
    `<text x="${LABEL - 8}" y="${middle + 5}" ${TEXT} text-anchor="end">${name}</text>`,
    `<rect x="${LABEL}" y="${y}" width="${scale(median).toFixed(1)}" height="${ROW - 8}" fill="${colour}"/>`,
    `<line x1="${(LABEL + scale(min)).toFixed(1)}" x2="${(LABEL + scale(max)).toFixed(1)}" y1="${middle}" y2="${middle}" stroke="#222"/>`,
    `<text x="${(LABEL + scale(max) + 8).toFixed(1)}" y="${middle + 5}" ${TEXT}>${value}</text>`,
  ].join('')
}

type Window = SystemReport['windows'][string][number]

interface Plot {
  readonly file: string
  readonly title: string
  readonly kind: WindowKind
  readonly figure: (window: Window) => number
}

const PLOTS: readonly Plot[] = [
  {
    file: 'requests.svg',
    title: 'Requests per second, 64 connections',
    kind: 'whole-64',
    figure: ({ perSecond }) => perSecond,
  },
  {
    file: 'cpu-per-request.svg',
    title: 'CPU microseconds per request, 64 connections',
    kind: 'whole-64',
    figure: ({ cpuUs }) => cpuUs,
  },
  {
    file: 'first-delta.svg',
    title: 'Milliseconds to the first delta, one connection',
    kind: 'first-delta',
    figure: ({ firstDeltaP50Ms }) => firstDeltaP50Ms,
  },
  {
    file: 'frames.svg',
    title: 'Frames per second, 512 streams of 50 a second each',
    kind: 'streams-512',
    figure: ({ framesPerSecond }) => framesPerSecond,
  },
  {
    file: 'cpu-per-frame.svg',
    title: 'CPU microseconds per frame, 512 streams',
    kind: 'streams-512',
    figure: ({ cpuUs }) => cpuUs,
  },
]

/** Every plot of a report that has data, by file name. */
export function plotsOf({ systems }: Report): ReadonlyMap<string, string> {
  const drawn = new Map<string, string>()
  for (const { file, title, kind, figure } of PLOTS) {
    const bars = systems.flatMap(({ name, windows }) => {
      const spread = spreadOfValid(windows[kind] ?? [], figure)
      return spread === undefined || spread.max === 0 ? [] : [{ name, spread }]
    })
    if (bars.length > 0) drawn.set(file, barChart(title, bars))
  }
  return drawn
}
