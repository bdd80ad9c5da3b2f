import { join } from 'node:path'
import { Field } from './field.ts'
import { spreadOfValid } from './figures.ts'
import type { Report, SystemReport } from './report.ts'
import { startRouter } from './router.ts'
import type { Bench, Suite } from './suite.ts'
import { chatBody, type ChatBody, type System } from './system.ts'
import { invalidText, markdownTable } from './table.ts'
import { FULL, QUICK, type WindowKind } from './windows.ts'

/** An API format: its path, and the same question in it. */
interface ChatApi {
  readonly name: string
  readonly path: string
  readonly body: (model: string, body: ChatBody) => string
}

const QUESTION = 'Say something short.'

/** The chat door first: the others are compared with it. */
const DOORS: readonly ChatApi[] = [
  { name: 'chat completions', path: '/v1/chat/completions', body: chatBody },
  {
    name: 'responses',
    path: '/v1/responses',
    body: (model, { stream, content = QUESTION }) =>
      JSON.stringify({ model, stream, input: content, store: false }),
  },
  {
    name: 'messages',
    path: '/v1/messages',
    body: (model, { stream, content = QUESTION }) =>
      JSON.stringify({
        model,
        stream,
        max_tokens: 1_024,
        messages: [{ role: 'user', content }],
      }),
  },
]

const KINDS: readonly WindowKind[] = ['whole-16', 'whole-64', 'streams-64']
const ROUNDS = 3
const CUSTOMERS = 100

/** CPU of one router by front door, in interleaved rounds. */
export function doors(bench: Bench): Suite {
  return {
    name: 'doors',
    options: '--doors',
    extent: { ...(bench.quick ? QUICK : FULL), rounds: ROUNDS, kinds: KINDS },
    fields: [() => startField(bench)],
    show: doorsTable,
    plots: () => new Map(),
  }
}

async function startField({ mock, scratch, log }: Bench): Promise<Field> {
  const field = new Field()
  log('starting the router')
  const router = await startRouter({
    mock: mock.address,
    directory: join(scratch, 'doors'),
    customers: CUSTOMERS,
    size: { furtherRoutes: 0 },
  })
  field.endsWith(() => router.stop())
  for (const door of DOORS) {
    const system = throughDoor(router.system(door.name, CUSTOMERS, false), door)
    // Paced streams are measured, large bodies are not.
    await field.enter(door.name, async () => system, { memory: false, streams: true })
  }
  return field
}

function throughDoor(system: System, { path, body }: ChatApi): System {
  return { ...system, callers: system.callers.map((caller) => ({ ...caller, path })), body }
}

/** CPU of each door, and how many times that of the chat door it is. */
export function doorsTable(report: Report): string {
  const [chat] = report.systems
  const rows = report.systems.map((system) => [
    system.name,
    ...KINDS.flatMap((kind) => {
      const cpu = cpuOf(system, kind)
      const ratio = cpu / (chat === undefined ? Number.NaN : cpuOf(chat, kind))
      return [cpu.toFixed(0), ratio.toFixed(2)]
    }),
    invalidText(system),
  ])
  const titles = KINDS.flatMap((kind) => [`CPU at ${kind}, us`, 'of chat'])
  return markdownTable(['', ...titles, 'invalid windows'], rows)
}

/** CPU per request or, of streams, per event; NaN without a valid window. */
function cpuOf(system: SystemReport, kind: WindowKind): number {
  return spreadOfValid(system.windows[kind] ?? [], ({ cpuUs }) => cpuUs)?.median ?? Number.NaN
}
