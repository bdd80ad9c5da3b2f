import { join } from 'node:path'
import { Field } from './field.ts'
import { startFloor } from './floor.ts'
import { otherDoors } from './doors.ts'
import { comparisonPlots } from './comparison-plots.ts'
import { comparisonSections } from './comparison-tables.ts'
import { installPortkey, startPortkeyOnNode } from './portkey.ts'
import { startPortkeyInWorkerd } from './portkey-workerd.ts'
import { startRouter } from './router.ts'
import type { Bench, Exhibit, Suite } from './suite.ts'
import { chatCaller, type MockAddress, type System } from './system.ts'
import { COMMON_KINDS, FULL, QUICK } from './windows.ts'

const CUSTOMERS = 100

/** Of what is no yardstick for many streams; falling behind would take minutes. */
const FEW_STREAMS = COMMON_KINDS.filter((kind) => kind !== 'streams-512')

export const COMPARISON: Exhibit = {
  name: 'bench',
  sections: comparisonSections,
  plots: comparisonPlots,
}

/** The router beside direct calls, a bare pass-through and the peer. */
export function comparison(bench: Bench): Suite {
  return {
    options: '',
    extent: bench.quick ? QUICK : FULL,
    fields: [() => startField(bench)],
  }
}

async function startField({ mock, scratch, quick }: Bench): Promise<Field> {
  const field = new Field()
  const { address } = mock
  await field.enter('direct', async () => directly(address), { kinds: FEW_STREAMS })
  // A short run measures the memory of one start.
  const repeated = (again: () => Promise<System>) => (quick ? {} : { again })
  await field.enter('floor', () => startFloor(address, scratch), {
    ...repeated(() => startFloor(address, join(scratch, 'again'))),
    kinds: FULL.kinds,
  })
  const startIn = (directory: string) => {
    const size = { furtherRoutes: 0 }
    return startRouter({ mock: address, directory, customers: CUSTOMERS, size })
  }
  const router = await startIn(join(scratch, 'router'))
  field.endsWith(() => router.stop())
  if (router.chip !== undefined) mock.attest(router.chip)
  const chat = router.system('router', CUSTOMERS, false)
  const again = async (): Promise<System> => {
    const other = await startIn(join(scratch, 'again', 'router'))
    return { ...other.system('router', CUSTOMERS, false), stop: () => other.stop() }
  }
  await field.enter('router', async () => chat, { ...repeated(again), kinds: COMMON_KINDS })
  await field.enter('router-pinned', async () => router.system('router-pinned', CUSTOMERS, true), {
    memory: false,
    kinds: FULL.kinds,
  })
  await field.enter('router-1', async () => router.system('router-1', 1, false), {
    memory: false,
    sizes: false,
    kinds: ['whole-1', 'whole-64'],
  })
  for (const { system, ...part } of otherDoors(chat)) {
    field.add(system, { ...part, memory: false, sizes: false })
  }
  const peer = () => installPortkey(scratch)
  await field.enter('portkey-node', async () => startPortkeyOnNode(address, await peer()))
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
