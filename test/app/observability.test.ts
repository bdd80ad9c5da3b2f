import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import {
  answering,
  content,
  event,
  EVENT_STREAM,
  errorObject,
  healthy,
  ROLE,
  STOP,
  DONE,
} from '../faults/answers.ts'
import { openLoadWorld, type LoadWorld } from '../load/load-world.ts'
import type { Script } from '../support/fault-provider.ts'
import { keepAway } from '../support/kept-away.ts'
import { until } from '../support/stack.ts'
import type { LogEvent, LogFields } from '../../src/worker/http/log.ts'

/** What operators see of requests, good and bad: metrics and log, and the page that explains them. */

const failing: Script = ({ wire }) => {
  wire.head(500, {})
  wire.end()
}
const cut: Script = async ({ wire }) => {
  wire.head(200, EVENT_STREAM)
  wire.send(ROLE + content('Hello'))
  await delay(50)
  wire.send(event(errorObject()))
}

let world: LoadWorld
let metrics: string
let log: readonly Record<string, unknown>[]
/** Lines in the worker's log that its runtime wrote. */
let plain: readonly string[]

const lineSchema = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]),
)

beforeAll(async () => {
  const uncounted = answering(ROLE + content('Hello') + STOP + DONE, '')
  world = await openLoadWorld({
    scripts: { sound: healthy, failing, broken: failing, cut, uncounted },
    alone: ['sound', 'broken', 'cut', 'uncounted'],
    timeouts: {},
    customers: 1,
  })
  const key = world.customers[0]?.key ?? ''
  const chat = async (model: string, more: object = {}) => {
    const messages = [{ role: 'user', content: 'Hello!' }]
    const answer = await world.stack.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model, messages, ...more }),
    })
    await answer.text()
  }
  await chat('sound')
  await chat('sound', { stream: true })
  await chat('failing')
  await chat('broken', { failover: ['sound'] })
  await chat('cut', { stream: true })
  await chat('uncounted', { stream: true })
  await chat('nothing')
  const { enclave } = world.stack.local.pids
  const letBack = keepAway(world.stack.stateDir, 'enclave')
  // For longer than the worker believes in a daemon that it has heard of.
  await delay(300)
  await chat('sound')
  letBack()
  await until(() => world.stack.localNow().pids.enclave !== enclave)
  const headers = { authorization: `Bearer ${world.stack.local.admin_token}` }
  metrics = await (await world.stack.fetch('/admin/metrics', { headers })).text()
  const text = readFileSync(join(world.stack.stateDir, 'log/worker.log'), 'utf8').trimEnd()
  const [json, others] = divided(text.split('\n'), (line) => line.startsWith('{'))
  log = json.map((line) => lineSchema.parse(JSON.parse(line)))
  plain = others
}, 120_000)
afterAll(() => world.close())

/** Lines that are so, and the others. */
function divided(lines: readonly string[], isSo: (line: string) => boolean) {
  return [lines.filter(isSo), lines.filter((line) => !isSo(line))] as const
}

/** The value of a series, by the beginning of its line; NaN when there is none. */
function value(series: string): number {
  const line = metrics.split('\n').find((text) => text.startsWith(`${series} `))
  return Number(line?.slice(series.length + 1) ?? Number.NaN)
}

describe('the metrics', () => {
  test('count requests, attempts, failovers, tokens, receipts and faults', () => {
    expect(value('cmr_requests_total{endpoint="chat",status="200",code=""}')).toBe(6)
    expect(value('cmr_requests_total{endpoint="chat",status="404",code="model_not_found"}')).toBe(1)
    expect(
      value('cmr_requests_total{endpoint="chat",status="503",code="service_unavailable"}'),
    ).toBe(1)
    expect(value('cmr_attempts_total{route="alpha/failing",outcome="unclassified"}')).toBe(1)
    expect(value('cmr_attempts_total{route="beta/failing",outcome="served"}')).toBe(1)
    expect(value('cmr_failovers_total{route="alpha/sound"}')).toBe(1)
    expect(value('cmr_tokens_total{route="alpha/sound",kind="prompt"}')).toBe(27)
    expect(value('cmr_tokens_total{route="alpha/sound",kind="completion"}')).toBe(18)
    // The daemon signs whole answers as it writes them, but for those that came before it could be sent messages.
    const withAnswer = value('cmr_receipts_total{receipt="true",signed="with_answer"}')
    const afterwards = value('cmr_receipts_total{receipt="true",signed="afterwards"}')
    expect(withAnswer).toBeGreaterThanOrEqual(2)
    expect(withAnswer + afterwards).toBe(5)
    expect(value('cmr_receipts_total{receipt="false",signed="not"}')).toBe(1)
    expect(value('cmr_usage_estimated_total{route="alpha/uncounted"}')).toBe(1)
    expect(value('cmr_usage_estimated_total{route="alpha/sound"}')).toBeNaN()
    expect(value('cmr_streams_cut_total{route="alpha/cut",failure="unclassified"}')).toBe(1)
    expect(value('cmr_faults_total{part="link",failure="unreachable"}')).toBeGreaterThan(0)
  })

  test('spread durations: of requests, to the first delta, and of settling', () => {
    expect(value('cmr_request_duration_seconds_count{endpoint="chat"}')).toBe(8)
    expect(value('cmr_first_delta_seconds_count{route="alpha/sound"}')).toBe(1)
    expect(value('cmr_settle_seconds_count')).toBe(6)
    expect(value('cmr_settle_seconds_sum')).toBeGreaterThan(0)
  })

  test('tell the state of routes, proofs, the daemon and the work', () => {
    expect(value('cmr_route_resting{route="alpha/sound"}')).toBe(0)
    expect(value('cmr_provider_proven{provider="alpha",adapter="none",state="unattested"}')).toBe(0)
    expect(value('cmr_enclave_up')).toBe(1)
    expect(value('cmr_open_requests')).toBe(0)
  })

  test('are all explained, each name on the page', () => {
    const page = readFileSync(join(PROJECT_DIR, 'docs/observability.md'), 'utf8')
    const names = [...metrics.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name)
    expect(names.length).toBeGreaterThan(12)
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([])
    const documented = [...page.matchAll(/^\| `(cmr_\w+)`/gm)].map(([, name]) => name)
    expect(new Set(documented)).toEqual(new Set(names))
  })

  test('are all named among the alarms', () => {
    const page = readFileSync(join(PROJECT_DIR, 'docs/operations.md'), 'utf8')
    const names = [...metrics.matchAll(/^# TYPE (\w+) /gm)].map(([, name = '']) => name)
    expect(names.length).toBeGreaterThan(12)
    expect(names.filter((name) => !page.includes(name))).toEqual([])
  })
})

/** All events and fields of the log: the types refuse a list that lacks one or has one more. */
const EVENTS: Readonly<Record<LogEvent, true>> = {
  request: true,
  attempt_failed: true,
  attempt_served: true,
  stream_cut: true,
  settled: true,
  settle_failed: true,
  stream_failed: true,
  release_failed: true,
  usage_estimated: true,
  usage_capped: true,
  settle_quarantined: true,
  answer_replayed: true,
  kept_answer_unreadable: true,
  webhook_failed: true,
  config_loaded: true,
  link_unavailable: true,
  link_chunks_ended: true,
  link_messages_ended: true,
  storage_unavailable: true,
  row_waited: true,
  audit_outcome_lost: true,
  sweep: true,
}
const FIELDS: Readonly<Record<keyof LogFields, true>> = {
  request_id: true,
  method: true,
  endpoint: true,
  status: true,
  code: true,
  route: true,
  modality: true,
  attempt: true,
  failure: true,
  failover: true,
  duration_ms: true,
  first_delta_ms: true,
  prompt_tokens: true,
  completion_tokens: true,
  receipt: true,
  signed: true,
  cost_nano: true,
  generation: true,
  count: true,
  error: true,
  error_code: true,
  frames: true,
}

describe('the log', () => {
  test('is JSON but for the lines of the runtime, which writes the one that the page explains when it starts', () => {
    expect(plain.filter((line) => !/^(?:workerd\/|stack: )/.test(line))).toEqual([])
    expect(plain[0]).toMatch(/^workerd\/api\/per-isolate-bootstrap.* compile cache failed /)
  })

  test('has an event for each thing that happened, under the id of its request', () => {
    const events = new Set(log.map(({ event: name }) => name))
    const expected = ['request', 'attempt_served', 'attempt_failed', 'settled', 'stream_cut']
    expect([...events]).toEqual(expect.arrayContaining(expected))
    expect([...events]).toEqual(
      expect.arrayContaining(['config_loaded', 'link_unavailable', 'usage_estimated']),
    )
    const failed = log.find(({ event: name }) => name === 'attempt_failed')
    const same = log.filter(({ request_id: id }) => id === failed?.['request_id'])
    expect(same.map(({ event: name }) => name)).toEqual([
      'attempt_failed',
      'attempt_served',
      'settled',
      'request',
    ])
  })

  test('has no event and no field that the page does not explain, and the page none besides', () => {
    const events = Object.keys(EVENTS)
    const fields = Object.keys(FIELDS)
    const page = readFileSync(join(PROJECT_DIR, 'docs/observability.md'), 'utf8')
    const section = (title: string) => page.split(`\n### ${title}\n`)[1]?.split('\n#')[0] ?? ''
    const listed = (title: string) =>
      [...section(title).matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name)
    expect(new Set(listed('Events'))).toEqual(new Set(events))
    expect(new Set(listed('Fields'))).toEqual(new Set(['at', 'event', ...fields]))
    for (const line of log) {
      expect(events).toContain(line['event'])
      expect(['at', 'event', ...fields]).toEqual(expect.arrayContaining(Object.keys(line)))
    }
  })
})
