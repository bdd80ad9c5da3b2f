import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Known } from './use-data.ts'

interface PanelProps {
  readonly title: string
  readonly lead?: ComponentChildren
  readonly aside?: ComponentChildren
  /** Whether the heading takes the focus when the panel is shown: set for the view that the user navigated to. */
  readonly takesFocus?: boolean
  readonly children?: ComponentChildren
}

/** A part of the page under a heading of its own. */
export function Panel({ title, lead, aside, takesFocus = false, children }: PanelProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (takesFocus) heading.current?.focus({ preventScroll: true })
  }, [takesFocus])
  return (
    <section class="panel" aria-label={title}>
      <div class="head">
        <h2 ref={heading} tabIndex={-1}>
          {title}
        </h2>
        {aside}
      </div>
      {lead !== undefined && <p class="hint">{lead}</p>}
      {children}
    </section>
  )
}

/** A placeholder while there is no data, and the problem when the data could not be refreshed. */
export function LoadState({ data, problem }: Known<unknown>) {
  return (
    <>
      {problem !== '' && (
        <p class="fault" role="alert">
          {problem}
          {data !== undefined && ' What is shown is from before.'}
        </p>
      )}
      {data === undefined && problem === '' && (
        <p class="working" role="status">
          Loading …
        </p>
      )}
    </>
  )
}
