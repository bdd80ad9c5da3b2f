import { join } from 'node:path'
import { startFloor } from './floor.ts'
import type { Mock } from './mock.ts'
import { installPortkey, startPortkeyOnNode } from './portkey.ts'
import { startPortkeyInWorkerd } from './portkey-workerd.ts'
import { untilServes } from './processes.ts'
import { startRouter } from './router.ts'
import type { Entrant } from './run.ts'
import { WHOLE } from './behaviours.ts'
import { chatBody, chatCaller, type MockAddress, type Skipped, type System } from './system.ts'

export interface Field {
  readonly entrants: readonly Entrant[]
  readonly skipped: readonly Skipped[]
  stop(): Promise<void>
}

const CUSTOMERS = 100
const SERVES_WITHIN_MS = 30_000

/** Starts every system; one that cannot run here is named, with the reason. */
export async function startField(mock: Mock, scratch: string): Promise<Field> {
  const entrants: Entrant[] = []
  const skipped: Skipped[] = []
  const stops: (() => Promise<void>)[] = []
  const enter = async (name: string, start: () => Promise<System>, part: Partial<Entrant> = {}) => {
    try {
      const system = await start()
      stops.push(() => system.stop())
      await untilServes(() => ask(system), SERVES_WITHIN_MS)
      entrants.push({ system, memory: true, streams: true, ...part })
    } catch (error) {
      skipped.push({ name, reason: error instanceof Error ? error.message : String(error) })
    }
  }
  const { address } = mock
  await enter('direct', async () => directly(address))
  await enter('floor', () => startFloor(address, scratch))
  const directory = join(scratch, 'router')
  const size = { furtherRoutes: 0 }
  const router = await startRouter({ mock: address, directory, customers: CUSTOMERS, size })
  stops.push(() => router.stop())
  if (router.chip !== undefined) mock.attest(router.chip)
  await enter('router', async () => router.system('router', CUSTOMERS, false))
  await enter('router-pinned', async () => router.system('router-pinned', CUSTOMERS, true), {
    memory: false,
  })
  await enter('router-1', async () => router.system('router-1', 1, false), {
    memory: false,
    streams: false,
  })
  const peer = () => installPortkey(scratch)
  await enter('portkey-node', async () => startPortkeyOnNode(address, await peer()))
  await enter('portkey-workerd', async () => startPortkeyInWorkerd(address, await peer(), scratch))
  return { entrants, skipped, stop: () => stopAll(stops) }
}

function directly({ port }: MockAddress): System {
  return {
    name: 'direct',
    port,
    pids: [],
    callers: [chatCaller()],
    model: (behaviour) => behaviour,
    stop: async () => {},
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

async function stopAll(stops: readonly (() => Promise<void>)[]): Promise<void> {
  for (const stop of stops) await stop()
}
