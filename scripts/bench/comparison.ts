import { join } from 'node:path'
import { Field } from './field.ts'
import { startFloor } from './floor.ts'
import { plotsOf } from './plot.ts'
import { installPortkey, startPortkeyOnNode } from './portkey.ts'
import { startPortkeyInWorkerd } from './portkey-workerd.ts'
import { startRouter } from './router.ts'
import type { Bench, Suite } from './suite.ts'
import { chatCaller, type MockAddress, type System } from './system.ts'
import { figureTable } from './table.ts'
import { targetTable } from './targets.ts'
import { FULL, QUICK } from './windows.ts'

const CUSTOMERS = 100

/** The router beside direct calls, a bare pass-through and the peer. */
export function comparison(bench: Bench): Suite {
  return {
    name: 'bench',
    options: '',
    extent: bench.quick ? QUICK : FULL,
    fields: [() => startField(bench)],
    show: (report) => `${figureTable(report)}\n\n${targetTable(report)}`,
    plots: plotsOf,
  }
}

async function startField({ mock, scratch }: Bench): Promise<Field> {
  const field = new Field()
  const { address } = mock
  await field.enter('direct', async () => directly(address))
  await field.enter('floor', () => startFloor(address, scratch), { crowds: true })
  const directory = join(scratch, 'router')
  const size = { furtherRoutes: 0 }
  const router = await startRouter({ mock: address, directory, customers: CUSTOMERS, size })
  field.endsWith(() => router.stop())
  if (router.chip !== undefined) mock.attest(router.chip)
  await field.enter('router', async () => router.system('router', CUSTOMERS, false), {
    crowds: true,
  })
  await field.enter('router-pinned', async () => router.system('router-pinned', CUSTOMERS, true), {
    memory: false,
    crowds: true,
  })
  await field.enter('router-1', async () => router.system('router-1', 1, false), {
    memory: false,
    streams: false,
  })
  const peer = () => installPortkey(scratch)
  await field.enter('portkey-node', async () => startPortkeyOnNode(address, await peer()))
  await field.enter('portkey-workerd', async () =>
    startPortkeyInWorkerd(address, await peer(), scratch),
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
