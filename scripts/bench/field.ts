import { WHOLE } from './behaviours.ts'
import { COMMON_KINDS, warmUpFor } from './windows.ts'
import { untilServes } from './processes.ts'
import type { Entrant } from './run.ts'
import { chatBody, chatCaller, type Skipped, type System } from './system.ts'

const START_TIMEOUT_MS = 30_000

/** Systems that are measured together. */
export class Field {
  readonly entrants: Entrant[] = []
  readonly skipped: Skipped[] = []
  readonly #stops: (() => Promise<void>)[] = []

  /** Starts a system and adds it. A system that cannot run here is recorded with the reason. */
  async enter(
    name: string,
    start: () => Promise<System>,
    part: Partial<Entrant> = {},
  ): Promise<void> {
    try {
      const system = await start()
      this.endsWith(() => system.stop())
      await untilServes(() => ask(system), START_TIMEOUT_MS)
      this.add(system, part)
    } catch (error) {
      this.skipped.push({ name, reason: error instanceof Error ? error.message : String(error) })
    }
  }

  /** Adds a system that is already running. */
  add(system: System, part: Partial<Entrant> = {}): void {
    this.entrants.push({
      system,
      warmUp: warmUpFor(part.kinds ?? COMMON_KINDS),
      kinds: COMMON_KINDS,
      sizes: true,
      tools: [],
      ...part,
    })
  }

  /** Registers a stop function. Stop functions run in reverse order of registration. */
  endsWith(stop: () => Promise<void>): void {
    this.#stops.unshift(stop)
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops) await stop()
  }
}

function ask(system: System): Promise<Response> {
  const [caller = chatCaller()] = system.callers
  return fetch(`http://127.0.0.1:${system.port}${caller.path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...caller.headers },
    body: chatBody(system.model(WHOLE), { stream: false }),
  })
}
