import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { AnswerReader, type AnswerProgress } from './answer-reader.ts'
import { loadPlanSchema, type LoadPlan } from './load-plan.ts'
import { LoadWindow } from './load-window.ts'

/**
 * The load generator, in a process of its own: a closed loop over kept-alive raw sockets. It receives one `LoadPlan` at
 * a time, reports when the window opens and closes, and then sends the results.
 */
process.on('message', (received) => void run(loadPlanSchema.parse(received)))
process.on('disconnect', () => process.exit(0))

/** How long after the window streams may end, ms, so that slow systems can be measured too. */
const LATEST_END_MS = 40_000

/** Not reset between windows, so that all customers are used even when there are many. */
let turn = 0

async function run(plan: LoadPlan): Promise<void> {
  const window = new RequestWindow(plan)
  const clients = Array.from({ length: plan.connections }, () => new Client(window))
  for (const client of clients) client.start()
  await window.pass(plan)
  await Promise.race([Promise.all(clients.map((client) => client.ended)), delay(LATEST_END_MS)])
  for (const client of clients) client.giveUp()
  process.send?.({ type: 'result', result: window.result })
}

/** A window, and the requests of its load. */
class RequestWindow extends LoadWindow {
  readonly plan: LoadPlan
  readonly #requests: readonly Buffer[]

  constructor(plan: LoadPlan) {
    super()
    this.plan = plan
    this.#requests = plan.requests.map((text) => Buffer.from(text, 'latin1'))
  }

  /** The next request, for any connection. */
  nextRequest(): Buffer | undefined {
    turn += 1
    return this.#requests[turn % this.#requests.length]
  }
}

/** One connection, which sends a request whenever the previous answer is complete. */
class Client {
  readonly #window: RequestWindow
  readonly #socket: Socket
  readonly #reader = new AnswerReader()
  readonly #ended = Promise.withResolvers<void>()
  #sentAt = 0
  #frames = 0
  #frameAt = 0
  #waiting = false

  constructor(window: RequestWindow) {
    this.#window = window
    this.#socket = connect({ port: window.plan.port, host: '127.0.0.1', noDelay: true })
  }

  /** Resolves when the last answer is complete. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  start(): void {
    this.#socket.on('data', (bytes: Buffer) => this.#take(bytes))
    this.#socket.on('error', () => {})
    this.#socket.once('close', () => {
      if (this.#waiting) this.#window.failed('the connection was lost')
      this.#ended.resolve()
    })
    this.#socket.once('connect', () => this.#send())
  }

  /** Counts a missing answer as failed. */
  giveUp(): void {
    if (this.#waiting) this.#window.failed('an answer did not come to its end in time')
    this.#waiting = false
    this.#socket.destroy()
  }

  #send(): void {
    const request = this.#window.nextRequest()
    this.#reader.reset()
    this.#frames = 0
    this.#waiting = true
    this.#sentAt = performance.now()
    if (request !== undefined) this.#socket.write(request)
  }

  #take(bytes: Buffer): void {
    const progress = this.#reader.push(bytes)
    if (progress.frames > this.#frames) {
      const now = performance.now()
      if (this.#frames === 0) this.#window.firstDelta(this.#elapsed)
      else this.#window.gap(now - this.#frameAt)
      this.#frameAt = now
      this.#window.frames(progress.frames - this.#frames)
      this.#frames = progress.frames
    }
    if (progress.complete) this.#finish(progress)
  }

  get #elapsed(): number {
    return performance.now() - this.#sentAt
  }

  #finish({ status, done }: AnswerProgress): void {
    const { plan } = this.#window
    this.#waiting = false
    if (status !== 200) this.#window.failed(`status ${status}`)
    else if (plan.stream && !done) this.#window.failed('a stream without [DONE]')
    else this.#window.completed(this.#elapsed)
    if (!plan.once && !this.#window.isClosed) return this.#send()
    this.#socket.end()
    this.#ended.resolve()
  }
}
