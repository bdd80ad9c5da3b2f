import { COMPARISON_TARGETS } from './comparison-targets.ts'
import { OTHER_ENDPOINTS } from './endpoints.ts'
import type { Spread } from './figures.ts'
import { WIDTH, type Plot, type Plots } from './plot.ts'
import type { Report } from './report.ts'
import { added, beside, cpuOfFloor, of, partsOf, type Figure } from './table.ts'
import { targetsPlot } from './targets-plot.ts'
import { STREAM_KINDS } from './windows.ts'

/** The colour of each system, the same in every plot. */
const SYSTEMS = {
  direct: '#b0b0b0',
  floor: '#6f6f6f',
  router: '#0072b2',
  'router-pinned': '#d55e00',
  'router-1': '#56b4e9',
  'portkey-node': '#e69f00',
  'portkey-workerd': '#cc79a7',
}

const NAMES = Object.keys(SYSTEMS)

const COLOUR_OF_SYSTEM = {
  field: 'system',
  type: 'nominal',
  scale: { domain: NAMES, range: Object.values(SYSTEMS) },
} as const

type Layers = Extract<Plot, { layer: unknown }>['layer']

/** One mark of a plot. */
interface Datum extends Spread {
  readonly system: string
}

/** Every plot of a comparison. */
export function comparisonPlots(report: Report): Plots {
  return {
    targets: targetsPlot(report, COMPARISON_TARGETS),
    requests: requestsPlot(report),
    'cpu-per-request': partsPlot(report),
    latency: latencyPlot(report),
    frames: streamsPlot(report, {
      title: 'Frames a second',
      subtitle: 'of those sent: 50 a second for each stream',
      figure: (streams) => {
        const sent = 50 * streams
        return ({ framesPerSecond }) => framesPerSecond / sent
      },
      format: '%',
    }),
    'cpu-per-frame': streamsPlot(report, {
      title: 'CPU of a frame',
      subtitle: 'microseconds, by the number of open streams',
      figure:
        () =>
        ({ cpuUs }) =>
          cpuUs,
      format: 'd',
    }),
    gaps: streamsPlot(report, {
      title: 'Gap between two frames of a stream, p99',
      subtitle: 'milliseconds on a logarithmic scale; they are sent 20 ms apart',
      figure:
        () =>
        ({ gapP99Ms }) =>
          gapP99Ms,
      format: 'd',
      logarithmic: true,
    }),
    endpoints: endpointsPlot(report),
  }
}

function requestsPlot(report: Report): Plot {
  const values = ([1, 16, 64] as const).flatMap((connections) =>
    valuesOf(
      report,
      of('', `whole-${connections}`, ({ perSecond }) => perSecond, 0),
    ).map((datum) => ({
      ...datum,
      connections: `${connections} connection${connections === 1 ? '' : 's'}`,
    })),
  )
  return {
    title: {
      text: 'Whole answers a second',
      subtitle: 'lines from the slowest to the fastest window',
    },
    data: { values: values.filter(({ system }) => system !== 'direct') },
    facet: { column: { field: 'connections', type: 'nominal', sort: null, title: null } },
    spec: {
      width: WIDTH / 3 - 10,
      layer: rangedBars('requests/s'),
    },
    resolve: { scale: { x: 'independent' } },
  }
}

/** Where the CPU time of a request is spent. */
function partsPlot(report: Report): Plot {
  const { systems } = report
  const parts = partsOf(report, 'whole-64')
  const shown = systems.filter(({ name }) => NAMES.includes(name) && name !== 'direct')
  const values = shown.flatMap((system) =>
    parts.flatMap(({ title: part, read }, order) => {
      const us = read(system, report)?.median
      return us === undefined ? [] : [{ system: system.name, part, us, order }]
    }),
  )
  const multiples = valuesOf(report, cpuOfFloor('', 'whole-64')).map(({ system, median }) => ({
    system,
    us: values.reduce((sum, datum) => sum + (datum.system === system ? datum.us : 0), 0),
    text: `${median.toFixed(1)} times the floor`,
  }))
  return {
    title: {
      text: 'CPU of a whole answer, by part',
      subtitle: 'microseconds of all processes at 64 connections',
    },
    width: WIDTH,
    layer: [
      {
        data: { values },
        mark: { type: 'bar', height: 18 },
        encoding: {
          y: SYSTEM_ROWS,
          x: { field: 'us', type: 'quantitative', title: 'us', stack: 'zero' },
          color: { field: 'part', type: 'nominal', sort: null, scale: { scheme: 'tableau10' } },
          order: { field: 'order', type: 'quantitative' },
        },
      },
      {
        data: { values: multiples.filter(({ us }) => us > 0) },
        mark: { type: 'text', align: 'left', dx: 5, fontSize: 11 },
        encoding: {
          y: SYSTEM_ROWS,
          x: { field: 'us', type: 'quantitative' },
          text: { field: 'text' },
        },
      },
    ],
  }
}

function latencyPlot(report: Report): Plot {
  const panels: readonly (readonly [string, Figure])[] = [
    ['p50 at 1 connection', added('', 'whole-1', ({ p50Ms }) => p50Ms)],
    ['p99 at 1 connection', added('', 'whole-1', ({ p99Ms }) => p99Ms)],
    ['first delta', added('', 'first-delta', ({ firstDeltaP50Ms }) => firstDeltaP50Ms)],
  ]
  const values = panels.flatMap(([panel, figure]) =>
    valuesOf(report, figure).map((datum) => ({ ...datum, panel })),
  )
  return {
    title: { text: 'Latency added to a direct call', subtitle: 'milliseconds' },
    data: { values: values.filter(({ system }) => system !== 'direct') },
    facet: { column: { field: 'panel', type: 'nominal', sort: null, title: null } },
    spec: { width: WIDTH / 3 - 10, layer: rangedBars('ms') },
    resolve: { scale: { x: 'independent' } },
  }
}

interface StreamsPlot {
  readonly title: string
  readonly subtitle: string
  readonly figure: (streams: number) => Parameters<typeof of>[2]
  readonly format: string
  readonly logarithmic?: boolean
}

function streamsPlot(
  report: Report,
  { title, subtitle, figure, format, logarithmic = false }: StreamsPlot,
): Plot {
  const values = Object.entries(STREAM_KINDS).flatMap(([streams, kind]) =>
    valuesOf(report, of('', kind, figure(Number(streams)), 0)).map((datum) => ({
      ...datum,
      streams,
    })),
  )
  const y = {
    field: 'median',
    type: 'quantitative',
    title: null,
    axis: { format },
    scale: { type: logarithmic ? 'log' : 'linear' },
  } as const
  const x = {
    field: 'streams',
    type: 'nominal',
    sort: null,
    title: 'open streams',
    axis: { labelAngle: 0 },
  } as const
  return {
    title: { text: title, subtitle },
    width: WIDTH,
    height: 240,
    data: { values: values.filter(({ median }) => median > 0) },
    layer: [
      {
        mark: { type: 'line', point: { size: 60 } },
        encoding: { x, y, color: COLOUR_OF_SYSTEM },
      },
      {
        mark: { type: 'rule' },
        encoding: {
          x,
          y: { field: 'min', type: 'quantitative', title: null },
          y2: { field: 'max' },
          color: COLOUR_OF_SYSTEM,
        },
      },
    ],
  }
}

function endpointsPlot(report: Report): Plot {
  const kinds = [
    ['a whole answer', 'whole-64'],
    ['an event of a stream', 'streams-64'],
  ] as const
  const values = kinds.flatMap(([what, kind]) => {
    const figure = beside('', kind, 'router', (own, chat) => own.cpuUs / chat.cpuUs)
    return valuesOf(report, figure, ['router', ...OTHER_ENDPOINTS]).map((datum) => ({
      ...datum,
      what,
    }))
  })
  return {
    title: {
      text: 'CPU of the other endpoints',
      subtitle: 'as a multiple of the chat endpoint of the same router, 64 connections or streams',
    },
    data: { values: values.filter(({ system }) => system !== 'router') },
    facet: { column: { field: 'what', type: 'nominal', sort: null, title: null } },
    spec: { width: WIDTH / 2 - 10, layer: rangedBars('of the chat endpoint') },
  }
}

const SYSTEM_ROWS = { field: 'system', type: 'nominal', sort: null, title: null } as const

/** A bar for each system up to the median, with a line from the lowest to the highest window. */
function rangedBars(title: string): Layers {
  return [
    {
      mark: { type: 'bar', height: 14 },
      encoding: {
        y: SYSTEM_ROWS,
        x: { field: 'median', type: 'quantitative', title },
        color: { ...COLOUR_OF_SYSTEM, legend: null },
      },
    },
    {
      mark: { type: 'rule' },
      encoding: {
        y: SYSTEM_ROWS,
        x: { field: 'min', type: 'quantitative' },
        x2: { field: 'max' },
      },
    },
  ]
}

/** The values of a figure, for those of the named systems that have it. */
function valuesOf(report: Report, { read }: Figure, names: readonly string[] = NAMES): Datum[] {
  return report.systems.flatMap((system) => {
    const spread = names.includes(system.name) ? read(system, report) : undefined
    return spread === undefined ? [] : [{ system: system.name, ...spread }]
  })
}
