import { parse, View } from 'vega'
import { compile, type TopLevelSpec } from 'vega-lite'

/** A plot as Vega-Lite describes it. */
export type Plot = TopLevelSpec

/** The plots of a report, by the name of their files without its ending. */
export type Plots = Readonly<Record<string, Plot>>

/** How wide a plot is, pixels. */
export const WIDTH = 560

/** How all plots look. */
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
