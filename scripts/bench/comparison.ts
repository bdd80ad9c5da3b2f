import { join } from 'node:path'
import { Field } from './field.ts'
import { startFloor } from './floor.ts'
import { otherEndpoints } from './endpoints.ts'
import { comparisonPlots } from './comparison-plots.ts'
import { comparisonSections } from './comparison-tables.ts'
import type { Fresh } from './memory.ts'
import { installPortkey, PORTKEY_ON_NODE, startPortkeyOnNode } from './portkey.ts'
import { startPortkeyInWorkerd } from './portkey-workerd.ts'
import { startRouter, type RouterStack } from './router.ts'
import type { Bench, Exhibit, Suite } from './suite.ts'
import { chatCaller, type MockAddress, type System } from './system.ts'
import { COMMON_KINDS, FULL, MEMORY_STARTS, QUICK } from './windows.ts'

const CUSTOMERS = 100

/**
 * The windows of systems that are no reference for 512 streams; a system that falls behind there would take minutes.
 */
const FEW_STREAMS = COMMON_KINDS.filter((kind) => kind !== 'streams-512')

export const COMPARISON: Exhibit = {
  name: 'bench',
  sections: comparisonSections,
  plots: comparisonPlots,
}

/** Compares the router with direct calls, a bare pass-through and the peer. */
export function comparison(bench: Bench): Suite {
  return {
    options: '',
    extent: bench.quick ? QUICK : FULL,
    memory: startedForMemory(bench),
    fields: [() => startField(bench)],
  }
}

/** Instances that are started only for this, so that they have served no request before. */
function startedForMemory({ mock, scratch, quick }: Bench): readonly Fresh[] {
  const { address } = mock
  const directory = join(scratch, 'memory')
  const times = quick ? 1 : MEMORY_STARTS
  const router = async (): Promise<System> => {
    const stack = await startRouterIn(join(directory, 'router'), address)
    return { ...stack.system('router', CUSTOMERS, false), stop: () => stack.stop() }
  }
  const peer = () => installPortkey(scratch)
  return [
    { name: 'floor', start: () => startFloor(address, directory), times },
    { name: 'router', start: router, times },
    {
      name: PORTKEY_ON_NODE,
      start: async () => startPortkeyOnNode(address, await peer()),
      times: 1,
    },
    {
      name: 'portkey-workerd',
      start: async () => startPortkeyInWorkerd(address, await peer(), directory),
      times: 1,
    },
  ]
}

function startRouterIn(directory: string, mock: MockAddress): Promise<RouterStack> {
  return startRouter({ mock, directory, customers: CUSTOMERS, size: { furtherRoutes: 0 } })
}

async function startField({ mock, scratch }: Bench): Promise<Field> {
  const field = new Field()
  const { address } = mock
  // No warm-up: direct calls have no process besides the mock, which is warm from all other systems.
  await field.enter('direct', async () => directly(address), { kinds: FEW_STREAMS, warmUp: [] })
  await field.enter('floor', () => startFloor(address, scratch), { kinds: FULL.kinds })
  const router = await startRouterIn(join(scratch, 'router'), address)
  field.endsWith(() => router.stop())
  if (router.chip !== undefined) mock.attest(router.chip)
  const chat = router.system('router', CUSTOMERS, false)
  await field.enter('router', async () => chat)
  await field.enter('router-pinned', async () => router.system('router-pinned', CUSTOMERS, true), {
    kinds: FULL.kinds,
  })
  await field.enter('router-1', async () => router.system('router-1', 1, false), {
    sizes: false,
    kinds: ['whole-1', 'whole-64'],
  })
  for (const { system, ...part } of otherEndpoints(chat))
    field.add(system, { ...part, sizes: false })
  const peer = () => installPortkey(scratch)
  await field.enter(PORTKEY_ON_NODE, async () => startPortkeyOnNode(address, await peer()))
  await field.enter(
    'portkey-workerd',
    async () => startPortkeyInWorkerd(address, await peer(), scratch),
    { kinds: FEW_STREAMS },
  )
  return field
}

function directly({ port }: MockAddress): System {
  return {
    name: 'direct',
    port,
    processes: () => ({}),
    callers: [chatCaller()],
    model: (behaviour) => behaviour,
    stop: async () => {},
  }
}
