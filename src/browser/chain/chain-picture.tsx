import type { Check } from '../../verify/check.ts'
import { COLUMNS, type Column } from './box-definition.ts'
import { ChainLines } from './chain-lines.tsx'
import type { Box, BoxState } from './picture.ts'

/** The name and the sign of each state: colour is never the only indication. */
const STATES: Readonly<Record<BoxState, { word: string; sign: string }>> = {
  holds: { word: 'holds', sign: '✓' },
  simulated: { word: 'simulated', sign: '≈' },
  failed: { word: 'failed', sign: '✕' },
  moot: { word: 'not known', sign: '?' },
  open: { word: 'not judged', sign: '–' },
}

const COLUMN_NAMES = Object.keys(COLUMNS).filter((name): name is Column => name in COLUMNS)

/** What the user trusts in advance, by column: everything else is derived from it. */
const ANCHORS: Readonly<Record<Column, string | undefined>> = {
  exchange: undefined,
  hardware: "AMD's root keys, built into this page",
  binding: undefined,
  release: 'The release root that you gave',
}

interface ChainPictureProps {
  readonly boxes: readonly Box[]
  /** Before the first verification: the boxes show what will be checked. */
  readonly idle?: boolean
}

/** The chain of trust as boxes, with lines from each box to those that depend on it. */
export function ChainPicture({ boxes, idle = false }: ChainPictureProps) {
  const columns = COLUMN_NAMES.filter((name) => boxes.some(({ column }) => column === name))
  return (
    <section class="chain" aria-label="Chain of trust">
      <ChainLines boxes={boxes} />
      <div class={`columns columns-${columns.length}`}>
        {columns.map((name) => (
          <BoxColumn key={name} name={name} boxes={boxes} idle={idle} />
        ))}
      </div>
    </section>
  )
}

function BoxColumn({ name, boxes, idle }: Required<ChainPictureProps> & { readonly name: Column }) {
  const { title, by } = COLUMNS[name]
  const anchor = ANCHORS[name]
  return (
    <div class="column">
      <h3>
        {title} <small>{by}</small>
      </h3>
      {anchor && <p class="anchor">{anchor}</p>}
      <ol>
        {boxes
          .filter(({ column }) => column === name)
          .map((box) => (
            <li key={box.id}>
              {idle ? <IdleCard box={box} /> : <BoxCard box={box} boxes={boxes} />}
            </li>
          ))}
      </ol>
    </div>
  )
}

function IdleCard({ box: { id, title, says } }: { readonly box: Box }) {
  return (
    <div class="box idle" data-box={id} data-state="open">
      <p class="name">{title}</p>
      <p class="says">{says}</p>
    </div>
  )
}

function BoxCard({ box, boxes }: { readonly box: Box; readonly boxes: readonly Box[] }) {
  const { word, sign } = STATES[box.state]
  const beneath = boxes.filter(({ id }) => box.restsOn.includes(id))
  return (
    <details class="box" data-box={box.id} data-state={box.state} open={box.state === 'failed'}>
      <summary>
        <span class="sign" aria-hidden="true">
          {sign}
        </span>
        <span class="name">{box.title}</span>
        <span class="word">{word}</span>
        <span class="says">{explain(box, beneath)}</span>
      </summary>
      {box.unreadable && <p class="fault">Cannot be read: {box.unreadable}</p>}
      <CheckList checks={box.findings} />
      {beneath.length > 0 && (
        <p class="rests">Rests on: {beneath.map(({ title }) => title).join(', ')}.</p>
      )}
    </details>
  )
}

function explain(box: Box, beneath: readonly Box[]): string {
  if (box.state === 'failed') return `Not proven: ${box.says}`
  if (box.state === 'open') return `Nothing was at hand to tell: ${box.says}`
  if (box.state !== 'moot') return box.says
  const broken = beneath.filter(({ state }) => state === 'failed' || state === 'moot')
  return `Means nothing, for it rests on: ${broken.map(({ title }) => title).join(', ')}.`
}

/** The checks of a box; the failed ones first. */
function CheckList({ checks }: { readonly checks: readonly Check[] }) {
  if (checks.length === 0) return null
  const ordered = checks.toSorted((left, right) => Number(left.ok) - Number(right.ok))
  return (
    <ul class="checks">
      {ordered.map((check) => (
        <li key={check.name} data-ok={String(check.ok)}>
          <span class="sign" aria-hidden="true">
            {check.ok ? '✓' : '✕'}
          </span>
          <span class="hidden">{check.ok ? 'holds: ' : 'failed: '}</span>
          <code>{check.name}</code>{' '}
          <span>{check.ok ? check.proves : `not proven: ${check.proves}`}</span>
          {check.detail !== '' && <samp>{check.detail}</samp>}
        </li>
      ))}
    </ul>
  )
}
