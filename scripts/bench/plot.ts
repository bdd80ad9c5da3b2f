import { parse, View } from 'vega'
import { compile, type TopLevelSpec } from 'vega-lite'

/** A plot as a Vega-Lite specification. */
export type Plot = TopLevelSpec

/** The plots of a report, by file name without extension. */
export type Plots = Readonly<Record<string, Plot>>

/** The width of a plot, pixels. */
export const WIDTH = 560

/** The style of all plots. */
const CONFIG = {
  background: 'white',
  font: 'system-ui, sans-serif',
  view: { stroke: null },
  title: { anchor: 'start', fontSize: 15, subtitleColor: '#555', subtitlePadding: 6, offset: 12 },
  axis: {
    labelFontSize: 12,
    titleFontSize: 12,
    titleFontWeight: 'normal',
    gridColor: '#eee',
    labelLimit: 0,
  },
  header: { labelFontSize: 12 },
  legend: { labelFontSize: 12, title: null, orient: 'top' },
} as const

/** Draws a plot as SVG. */
export async function drawPlot(plot: Plot): Promise<string> {
  const view = new View(parse(compile({ ...plot, config: CONFIG }).spec), { renderer: 'none' })
  try {
    return `${await view.toSVG()}\n`
  } finally {
    view.finalize()
  }
}
