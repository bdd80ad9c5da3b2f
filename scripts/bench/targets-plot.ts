import { WIDTH, type Plot } from './plot.ts'
import type { Report } from './report.ts'
import { checkTargets, type Target } from './targets.ts'

/** Colours that also differ for readers who cannot tell red from green (Okabe and Ito, 2008). */
const GOOD = '#009e73'
const BAD = '#d55e00'

/** The left end of the bars, as a multiple of the bound. */
const LEAST = 0.1

/** Shows each measured value relative to its bound. */
export function targetsPlot(report: Report, targets: readonly Target[]): Plot {
  const values = checkTargets(report, targets).flatMap(({ title, ofBound, measured, bound, met }) =>
    ofBound === undefined || measured === undefined
      ? []
      : [
          {
            title,
            ofBound: Math.max(ofBound, LEAST),
            // To the right of the line that marks the bound, which would otherwise cross the text.
            textAt: Math.max(ofBound, 1),
            state: met ? 'met' : 'not met',
            text: `${measured.toFixed(measured < 100 ? 2 : 0)} (${bound})`,
          },
        ],
  )
  const y = {
    field: 'title',
    type: 'nominal',
    sort: null,
    title: null,
  } as const
  return {
    title: {
      text: 'Targets',
      subtitle: 'measured as a multiple of the bound, logarithmic: left of the line is met',
    },
    width: WIDTH - 180,
    data: { values },
    layer: [
      {
        mark: { type: 'bar', height: 12 },
        encoding: {
          y,
          x: {
            field: 'ofBound',
            type: 'quantitative',
            scale: { type: 'log', domain: [LEAST, 10], clamp: true, nice: false },
            title: 'of the bound',
            axis: { values: [0.1, 0.2, 0.5, 1, 2, 5, 10], format: '~g' },
          },
          x2: { datum: LEAST },
          color: {
            field: 'state',
            type: 'nominal',
            scale: { domain: ['met', 'not met'], range: [GOOD, BAD] },
          },
        },
      },
      {
        mark: { type: 'text', align: 'left', dx: 5, fontSize: 11 },
        encoding: { y, x: { field: 'textAt', type: 'quantitative' }, text: { field: 'text' } },
      },
      { mark: { type: 'rule', strokeWidth: 2 }, encoding: { x: { datum: 1 } } },
    ],
  }
}
