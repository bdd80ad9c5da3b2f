import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Box, BoxState } from './picture.ts'

interface Line {
  readonly id: string
  readonly path: string
  readonly state: BoxState
}

/**
 * Lines between the boxes, redrawn whenever the boxes move. They repeat what the text of the boxes says, so screen
 * readers skip them.
 */
export function ChainLines({ boxes }: { readonly boxes: readonly Box[] }) {
  const drawing = useRef<SVGSVGElement>(null)
  const [lines, setLines] = useState<readonly Line[]>([])
  useLayoutEffect(() => {
    const picture = drawing.current?.parentElement
    if (!picture) return undefined
    const draw = () => setLines(linesOf(boxes, picture))
    const watch = new ResizeObserver(draw)
    watch.observe(picture)
    for (const box of picture.querySelectorAll('[data-box]')) watch.observe(box)
    draw()
    return () => watch.disconnect()
  }, [boxes])
  return (
    <svg ref={drawing} class="lines" aria-hidden="true">
      {lines.map(({ id, path, state }) => (
        <path key={id} d={path} data-state={state} />
      ))}
    </svg>
  )
}

function linesOf(boxes: readonly Box[], picture: Element): Line[] {
  const frame = picture.getBoundingClientRect()
  const place = (id: string) => {
    const rect = picture.querySelector(`[data-box="${id}"]`)?.getBoundingClientRect()
    return rect && new DOMRect(rect.x - frame.x, rect.y - frame.y, rect.width, rect.height)
  }
  return boxes.flatMap((box) =>
    box.restsOn.flatMap((id) => {
      const from = place(id)
      const to = place(box.id)
      const beneath = boxes.find((one) => one.id === id)
      if (from === undefined || to === undefined || beneath === undefined) return []
      return [{ id: `${id} ${box.id}`, path: curve(from, to), state: beneath.state }]
    }),
  )
}

/**
 * A line between two boxes: from the lower edge of one to the upper edge of the other within a column, otherwise from
 * side to side.
 */
function curve(from: DOMRect, to: DOMRect): string {
  if (Math.abs(from.x - to.x) < 8) {
    const x = from.x + 22
    const [upper, lower] = from.y < to.y ? [from.bottom, to.y] : [to.bottom, from.y]
    return `M${x} ${upper}L${x} ${lower}`
  }
  const rightwards = to.x > from.x
  const start = { x: rightwards ? from.right : from.x, y: from.y + 24 }
  const end = { x: rightwards ? to.x : to.right, y: to.y + 24 }
  const bend = Math.max(16, Math.abs(end.x - start.x) / 2)
  const sign = rightwards ? 1 : -1
  return `M${start.x} ${start.y}C${start.x + sign * bend} ${start.y} ${end.x - sign * bend} ${end.y} ${end.x} ${end.y}`
}
