import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import type { Curve } from './curves.ts'

export interface PlotProps {
  readonly title: string
  readonly unit: string
  /** Unix seconds. */
  readonly times: readonly number[]
  readonly curves: readonly Curve[]
  /** A value with its unit. */
  readonly show: (value: number) => string
}

const HEIGHT = 190

/** Curves over time, with their totals as text below and all values in a table that can be expanded. */
export function Plot({ title, unit, times, curves, show }: PlotProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot>(undefined)
  const names = curves.map(({ label, color }) => `${label} ${color}`).join('|')
  useEffect(() => {
    const target = place.current
    if (target === null) return undefined
    const scheme = globalThis.matchMedia('(prefers-color-scheme: dark)')
    const redraw = () => {
      const data = plot.current?.data ?? [[]]
      plot.current?.destroy()
      plot.current = draw(target, curves, show)
      plot.current.setData(data)
    }
    redraw()
    const watch = new ResizeObserver(() => plot.current?.setSize(sizeOf(target)))
    watch.observe(target)
    scheme.addEventListener('change', redraw)
    return () => {
      watch.disconnect()
      scheme.removeEventListener('change', redraw)
      plot.current?.destroy()
      plot.current = undefined
    }
    // Redraws only when labels or colours change; new values arrive with every refresh and update the existing plot.
  }, [names])
  useEffect(() => {
    plot.current?.setData([[...times], ...curves.map(({ values }) => [...values])])
  }, [times, curves])
  return (
    <figure class="plot">
      <figcaption>
        {title} <small>{unit}</small>
      </figcaption>
      <div ref={place} aria-hidden="true" />
      <ul>
        {curves.map(({ label, color, total }) => (
          <li key={label} data-color={color}>
            {label} <strong>{total}</strong>
          </li>
        ))}
      </ul>
      <Values title={title} times={times} curves={curves} show={show} />
    </figure>
  )
}

/** A table of the times with a value other than 0, newest first. */
function Values({ title, times, curves, show }: Omit<PlotProps, 'unit'>) {
  const rows = times
    .map((time, index) => ({ time, values: curves.map(({ values }) => values[index] ?? null) }))
    .filter(({ values }) => values.some((value) => value !== null && value !== 0))
    .toReversed()
  if (rows.length === 0) return <p class="hint">Nothing in this time.</p>
  return (
    <details class="values">
      <summary>
        Values <span class="hidden">of {title}</span>
      </summary>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Values of ${title}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {curves.map(({ label }) => (
                <th key={label} scope="col" data-kind="number">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ time, values }) => (
              <tr key={time}>
                <th scope="row">{new Date(time * 1000).toLocaleString()}</th>
                {values.map((value, index) => (
                  <td key={index} data-kind="number">
                    {value === null ? '–' : show(value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}

const sizeOf = (target: HTMLElement) => ({
  width: Math.max(200, target.clientWidth),
  height: HEIGHT,
})

/** An empty plot in the colours of the page. */
function draw(target: HTMLElement, curves: readonly Curve[], show: PlotProps['show']): UPlot {
  const style = getComputedStyle(target)
  const color = (name: string) => style.getPropertyValue(name).trim()
  const line = { stroke: color('--line'), width: 1 }
  const axis = { stroke: color('--soft'), grid: line, ticks: line, font: '12px system-ui' }
  const series = curves.map((curve) => ({
    label: curve.label,
    stroke: color(curve.color),
    ...(curves.length === 1 && { fill: `${color(curve.color)}22` }),
    width: 2,
    // Show points when there are gaps: a value without neighbours draws no line.
    points: { show: curve.values.includes(null), size: 6 },
    spanGaps: false,
  }))
  return new UPlot(
    {
      ...sizeOf(target),
      legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      axes: [
        axis,
        { ...axis, size: 68, values: (_plot, ticks) => ticks.map((tick) => show(tick)) },
      ],
      scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
      series: [{}, ...series],
    },
    [[]],
    target,
  )
}
