import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { lastLines, startChild } from '../../src/host/stack/child.ts'
import { WORKERD } from '../../src/host/stack/workerd-config.ts'
import { chatCaller, type Caller, type MockAddress, type System } from './system.ts'

/** The minimum work of a gateway in workerd: read the request, parse it, call the provider, pipe the answer. */
const PASS_THROUGH = `export default {
  async fetch(request, env) {
    const text = await request.text()
    if (typeof JSON.parse(text).model !== 'string') return new Response(null, { status: 400 })
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(env.TARGET, { method: 'POST', headers, body: text })
    return new Response(answer.body, { status: answer.status, headers: answer.headers })
  },
}
`

const STOP_TIMEOUT_MS = 2_000

/** Starts the bare pass-through in front of the mock. */
export function startFloor(mock: MockAddress, scratch: string): Promise<System> {
  const target = `http://127.0.0.1:${mock.port}/v1/chat/completions`
  return startWorkerd({
    name: 'floor',
    directory: join(scratch, 'floor'),
    script: PASS_THROUGH,
    flags: [],
    bindings: { TARGET: target },
    callers: [chatCaller()],
  })
}

export interface WorkerdApp {
  readonly name: string
  /** The directory for its files. */
  readonly directory: string
  readonly script: string
  readonly flags: readonly string[]
  readonly bindings: Readonly<Record<string, string>>
  readonly callers: readonly Caller[]
}

/** One worker in a workerd of its own, on loopback. */
export async function startWorkerd(app: WorkerdApp): Promise<System> {
  const { directory } = app
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'worker.js'), app.script)
  writeFileSync(join(directory, 'config.capnp'), configOf(app))
  const args = ['serve', join(directory, 'config.capnp'), '--control-fd=3']
  const logFile = join(directory, 'workerd.log')
  const child = await startChild({ file: WORKERD, args, logFile, stdin: 'ignore', extra: 'pipe' })
  const control = child.process.stdio[3]
  if (!(control instanceof Readable)) throw new Error('descriptor 3 is not a pipe')
  const port = await portOf(control)
  if (port === undefined) {
    throw new Error(`workerd did not start: ${lastLines(logFile, 3).join(' ')}`)
  }
  return {
    name: app.name,
    port,
    processes: () => ({ workerd: [child.pid] }),
    callers: app.callers,
    model: (behaviour) => behaviour,
    stop: () => child.stop(STOP_TIMEOUT_MS),
  }
}

async function portOf(control: Readable): Promise<number | undefined> {
  for await (const line of createInterface({ input: control })) {
    const port = /"port":(\d+)/.exec(line)?.[1]
    if (port !== undefined) return Number(port)
  }
  return undefined
}

function configOf({ flags, bindings }: WorkerdApp): string {
  const bound = Object.entries(bindings).map(
    ([name, text]) => `(name = "${name}", text = ${JSON.stringify(text)})`,
  )
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "app", worker = (
      modules = [(name = "worker.js", esModule = embed "worker.js")],
      compatibilityDate = "2026-11-17",
      compatibilityFlags = ${JSON.stringify(flags)},
      bindings = [${bound.join(', ')}],
    )),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "app")],
);
`
}
