import { startFaultProvider, type FaultProvider, type Script } from '../support/fault-provider.ts'
import { MARKERS } from './markers.ts'

/** A provider that puts a marker into everything it says, well or badly. */

const HEADERS = { 'x-request-id': MARKERS.providerHeader, server: MARKERS.providerHeader }
const EVENTS = { ...HEADERS, 'content-type': 'text/event-stream' }
const JSON_TYPE = { ...HEADERS, 'content-type': 'application/json' }

const ERROR = {
  error: {
    message: MARKERS.providerError,
    type: MARKERS.providerError,
    code: MARKERS.providerError,
  },
}

const CALL = {
  id: 'call_1',
  type: 'function',
  function: { name: 'look', arguments: JSON.stringify({ for: MARKERS.completionTool }) },
}
const MESSAGE = {
  role: 'assistant',
  content: MARKERS.completion,
  reasoning: MARKERS.reasoning,
  tool_calls: [CALL],
}
const USAGE = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 }

const event = (data: object | string) =>
  `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
const chunk = (delta: object, finish: string | null = null, more: object = {}) =>
  event({ id: 'x', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], ...more })

const BEGIN =
  chunk({ role: 'assistant', reasoning: MARKERS.reasoning }) +
  chunk({ content: MARKERS.completion }) +
  chunk({ tool_calls: [{ index: 0, ...CALL }] })

/** Time enough for what was sent before to be passed on. */
const LATER_MS = 100

/** Script by upstream model. */
const SCRIPTS: Readonly<Record<string, Script>> = {
  sound: ({ wire, stream }) => {
    wire.head(200, stream ? EVENTS : JSON_TYPE)
    const choices = [{ index: 0, message: MESSAGE, finish_reason: 'tool_calls' }]
    const whole = JSON.stringify({ id: 'x', model: 'm', choices, usage: USAGE })
    wire.send(stream ? BEGIN + chunk({}, 'tool_calls', { usage: USAGE }) + event('[DONE]') : whole)
    wire.end()
  },
  'error-in-stream': ({ wire }) => {
    wire.head(200, EVENTS)
    wire.send(BEGIN)
    setTimeout(() => wire.send(event(ERROR)), LATER_MS)
  },
  'error-first': ({ wire, stream }) => {
    wire.head(200, stream ? EVENTS : JSON_TYPE)
    wire.send(stream ? event(ERROR) : JSON.stringify(ERROR))
    wire.end()
  },
  garbage: ({ wire, stream }) => {
    wire.head(200, stream ? EVENTS : JSON_TYPE)
    wire.send(stream ? BEGIN : `<p>${MARKERS.providerError}`)
    const rest = stream ? `data: {"${MARKERS.completion}\n\n` : '</p>'
    setTimeout(() => wire.send(rest), LATER_MS)
    setTimeout(() => wire.end(), 2 * LATER_MS)
  },
  reset: ({ wire }) => {
    wire.head(200, EVENTS)
    wire.send(BEGIN)
    setTimeout(() => wire.reset(), LATER_MS)
  },
  endless: ({ wire }) => {
    wire.head(200, EVENTS)
    wire.send(BEGIN)
  },
  ...Object.fromEntries(
    [400, 401, 404, 413, 429, 500, 503].map((status) => [`status-${status}`, refusal(status)]),
  ),
}

function refusal(status: number): Script {
  return ({ wire }) => {
    wire.head(status, { ...JSON_TYPE, 'retry-after': MARKERS.providerHeader })
    wire.send(JSON.stringify(ERROR))
    wire.end()
  }
}

export const LEAK_MODELS: readonly string[] = Object.keys(SCRIPTS)

export function startLeakProvider(): Promise<FaultProvider> {
  return startFaultProvider(({ model, wire }) => SCRIPTS[model] ?? (() => wire.reset()))
}
