import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { PictureKind } from '../chain/boxes.ts'
import { ChainPicture } from '../chain/chain-picture.tsx'
import { drawPicture, type Findings } from '../chain/picture.ts'
import type { ComponentChildren } from 'preact'

export interface ReportProps {
  readonly kind: PictureKind
  readonly report: Findings & {
    readonly ok: boolean
    readonly simulated: boolean
    readonly summary: string
    readonly notes: readonly string[]
  }
  /** The content of the documents, for display. */
  readonly children: ComponentChildren
}

/** A verdict, the picture of its chain of trust, and the details. */
export function Report({ kind, report, children }: ReportProps) {
  const { ok, simulated, summary, notes, checks } = report
  const boxes = useMemo(() => drawPicture(kind, report), [kind, report])
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [report])
  const standing = ok ? (simulated ? 'simulated' : 'holds') : 'failed'
  const [word = '', ...rest] = summary.split(/(?<=:) /)
  const passed = checks.filter((check) => check.ok).length
  return (
    <article class="report" data-state={standing}>
      <header class="verdict" data-state={standing}>
        <span class="seal" aria-hidden="true">
          {ok ? (simulated ? '≈' : '✓') : '✕'}
        </span>
        <div>
          <h2 ref={heading} tabIndex={-1}>
            <strong>{word}</strong> {rest.join(' ')}
          </h2>
          <p>
            {passed} of {checks.length} checks hold.
            {report.malformed.map(
              ({ document, reason }) => ` The ${document} cannot be read: ${reason}.`,
            )}
          </p>
        </div>
      </header>
      <ChainPicture boxes={boxes} />
      {notes.length > 0 && (
        <section class="notes" aria-label="What was not judged">
          <h3>What was not judged</h3>
          <ul>
            {notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </section>
      )}
      {children}
      <AllChecks report={report} />
    </article>
  )
}

function AllChecks({ report: { ok, summary, checks, notes } }: Pick<ReportProps, 'report'>) {
  const copy = () => {
    const rows = checks.map(({ name, ok: holds, proves, detail }) => ({
      name,
      ok: holds,
      proves,
      detail,
    }))
    return navigator.clipboard.writeText(
      JSON.stringify({ ok, summary, checks: rows, notes }, null, 2),
    )
  }
  return (
    <details class="all-checks">
      <summary>All {checks.length} checks as a table</summary>
      <p>
        <button type="button" class="plain" onClick={() => void copy()}>
          Copy as JSON
        </button>
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="All checks">
        <table>
          <thead>
            <tr>
              <th scope="col">Result</th>
              <th scope="col">Check</th>
              <th scope="col">Proves that</th>
              <th scope="col">Seen</th>
            </tr>
          </thead>
          <tbody>
            {checks.map(({ name, ok: holds, proves, detail }) => (
              <tr key={name} data-ok={String(holds)}>
                <td>{holds ? 'holds' : 'failed'}</td>
                <th scope="row">
                  <code>{name}</code>
                </th>
                <td>{proves}</td>
                <td>
                  <samp>{detail}</samp>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}
