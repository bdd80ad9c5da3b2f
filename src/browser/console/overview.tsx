import { useMemo, useState } from 'preact/hooks'
import * as z from 'zod'
import {
  errorCurves,
  errorsOf,
  failoverCurves,
  historySchema,
  requestCurves,
  spendCurves,
  timeCurves,
  timesOf,
  tokenCurves,
  type History,
} from './curves.ts'
import { count, duration, euros, percent } from './format.ts'
import { Panel, LoadState } from './panel.tsx'
import { Plot } from './plot.tsx'
import { useData } from './use-data.ts'
import type { ViewProps } from './view.ts'

const RANGES = [
  [1, '1 hour'],
  [6, '6 hours'],
  [24, '1 day'],
  [168, '1 week'],
  [720, '30 days'],
  [2160, '90 days'],
] as const

const UNITS: Readonly<Record<number, string>> = {
  60: 'per minute',
  3600: 'per hour',
  21600: 'per 6 hours',
}

/** The current state and the history. The history covers all workers and survives restarts of the router. */
export function Overview(props: ViewProps) {
  const [hours, setHours] = useState(24)
  const history = useData(props, `/admin/history?hours=${hours}`, historySchema)
  return (
    <>
      <Now {...props} />
      <Panel
        title="Over time"
        aside={
          <label class="range">
            <span>Time shown</span>
            <select
              value={String(hours)}
              onChange={({ currentTarget }) => setHours(Number(currentTarget.value))}
            >
              {RANGES.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          </label>
        }
      >
        <LoadState {...history} />
        {history.data && <Charts history={history.data} />}
      </Panel>
    </>
  )
}

const routesSchema = z.object({ data: z.array(z.object({ state: z.string() })) })
const providersSchema = z.object({ data: z.array(z.object({ state: z.string() })) })
const listSchema = z.object({ data: z.array(z.unknown()) })

/** The figures that an on-call operator looks at first. */
function Now(props: ViewProps) {
  const routes = useData(props, '/admin/routes', routesSchema)
  const providers = useData(props, '/admin/providers', providersSchema)
  const failed = useData(props, '/admin/webhooks/deliveries?state=failed', listSchema)
  const quarantine = useData(props, '/admin/quarantine', listSchema)
  const resting = routes.data?.data.filter(({ state }) => state !== 'closed').length
  const proving = providers.data?.data.filter(({ state }) => state !== 'unattested')
  const unproven = proving?.filter(({ state }) => state !== 'verified').length
  const problem = [routes, providers, failed, quarantine].find((one) => one.problem !== '')
  return (
    <Panel title="Now" takesFocus>
      {problem !== undefined && <LoadState {...problem} data={undefined} />}
      <ul class="tiles">
        <Tile
          name="Routes in service"
          href="#/routes"
          bad={resting}
          text={
            routes.data &&
            `${routes.data.data.length - (resting ?? 0)} of ${routes.data.data.length}`
          }
        />
        <Tile
          name="Providers proven"
          href="#/providers"
          bad={unproven}
          text={proving && `${proving.length - (unproven ?? 0)} of ${proving.length}`}
        />
        <Tile
          name="Webhooks given up"
          href="#/webhooks"
          bad={failed.data?.data.length}
          text={failed.data && count(failed.data.data.length)}
        />
        <Tile
          name="Bills in quarantine"
          bad={quarantine.data?.data.length}
          text={quarantine.data && count(quarantine.data.data.length)}
        />
      </ul>
    </Panel>
  )
}

interface TileProps {
  readonly name: string
  readonly text: string | undefined
  /** A count that should be 0, such as failed deliveries; undefined when it is not known. */
  readonly bad?: number | undefined
  readonly href?: string
}

function Tile({ name, text, bad, href }: TileProps) {
  const mood = bad === undefined ? 'idle' : bad === 0 ? 'good' : 'bad'
  return (
    <li data-mood={mood}>
      <span>{href === undefined ? name : <a href={href}>{name}</a>}</span>
      <strong>{text ?? '–'}</strong>
      <small>{{ idle: ' ', good: 'all well', bad: 'needs a look' }[mood]}</small>
    </li>
  )
}

function Charts({ history }: { readonly history: History }) {
  const unit = UNITS[history.step_seconds] ?? `per ${history.step_seconds} s`
  const times = useMemo(() => timesOf(history), [history])
  const common = { times, unit }
  return (
    <>
      <Sums history={history} />
      <div class="plots">
        <Plot {...common} title="Requests" curves={requestCurves(history)} show={count} />
        <Plot {...common} title="Errors by code" curves={errorCurves(history)} show={count} />
        <Plot
          {...common}
          unit="of an attempt, newest"
          title="Time to the first delta"
          curves={timeCurves(history, 'first_delta_ms')}
          show={duration}
        />
        <Plot
          {...common}
          unit="until the response starts, newest"
          title="Time of a request"
          curves={timeCurves(history, 'duration_ms')}
          show={duration}
        />
        <Plot {...common} title="Tokens" curves={tokenCurves(history)} show={count} />
        <Plot {...common} title="Spend" curves={spendCurves(history)} show={euros} />
        <Plot {...common} title="Failovers" curves={failoverCurves(history)} show={count} />
      </div>
    </>
  )
}

function Sums({ history: { data } }: { readonly history: History }) {
  const total = (of: (step: History['data'][number]) => number) =>
    data.reduce((sum, step) => sum + of(step), 0)
  const requests = total((step) => step.requests)
  const facts = [
    ['Requests', count(requests)],
    [
      'Refused (4xx)',
      percent(
        total((step) => errorsOf(step, '4')),
        requests,
      ),
    ],
    [
      'Failed (5xx)',
      percent(
        total((step) => errorsOf(step, '5')),
        requests,
      ),
    ],
    ['Tokens', count(total((step) => step.prompt_tokens + step.completion_tokens))],
    ['Billed', euros(total((step) => Number(step.cost_eur)))],
  ] as const
  return (
    <dl class="sums">
      {facts.map(([name, text]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  )
}
