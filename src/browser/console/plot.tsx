import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import type { Point } from './history.ts'

export interface Curve {
  readonly label: string
  readonly of: keyof Omit<Point, 'at'>
  /** The name of a colour in the style sheet. */
  readonly color: string
}

export interface PlotProps {
  readonly title: string
  readonly unit: string
  readonly curves: readonly Curve[]
  readonly points: readonly Point[]
}

const HEIGHT = 180

/** An empty plot in the colours of the page. */
function draw(target: HTMLElement, curves: readonly Curve[]): UPlot {
  const color = (name: string) => getComputedStyle(target).getPropertyValue(name).trim()
  const line = { stroke: color('--line') }
  const axis = { stroke: color('--soft'), grid: line, ticks: line }
  const series = curves.map((curve) => ({
    label: curve.label,
    stroke: color(curve.color),
    width: 2,
    points: { show: false },
  }))
  return new UPlot(
    {
      width: Math.max(200, target.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      axes: [axis, { ...axis, size: 56 }],
      series: [{}, ...series],
    },
    [[]],
    target,
  )
}

/** Curves over time. The latest values are also written below, for users who cannot see the plot. */
export function Plot({ title, unit, curves, points }: PlotProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot>(undefined)
  useEffect(() => {
    const target = place.current
    if (target === null) return undefined
    const made = draw(target, curves)
    plot.current = made
    const watch = new ResizeObserver(() =>
      made.setSize({ width: Math.max(200, target.clientWidth), height: HEIGHT }),
    )
    watch.observe(target)
    return () => {
      watch.disconnect()
      made.destroy()
    }
  }, [curves])
  useEffect(() => {
    plot.current?.setData([
      points.map(({ at }) => at),
      ...curves.map((curve) => points.map((point) => point[curve.of])),
    ])
  }, [curves, points])
  const last = points.at(-1)
  return (
    <figure class="plot">
      <figcaption>
        {title} <small>{unit}</small>
      </figcaption>
      <div ref={place} aria-hidden="true" />
      <ul>
        {curves.map(({ label, of, color }) => (
          <li key={of} data-color={color}>
            {label} <strong>{figure(last?.[of])}</strong>
          </li>
        ))}
      </ul>
    </figure>
  )
}

const figure = (value: number | null | undefined): string =>
  value === null || value === undefined
    ? '–'
    : value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 2 : 0 })
