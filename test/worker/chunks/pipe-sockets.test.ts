import { afterAll, beforeAll, expect, it } from 'vitest'
import { bundleForWorkerd } from '../../support/bundle.ts'
import { startWorkerd, type WorkerdProcess } from '../../support/workerd.ts'

let workerd: WorkerdProcess

beforeAll(async () => {
  const script = await bundleForWorkerd('test/support/worker/pipes-worker.ts')
  workerd = await startWorkerd({ script, text: {}, pipes: true })
}, 60_000)
afterAll(() => workerd.stop())

const ask = (path: string) => fetch(`http://127.0.0.1:${workerd.port}${path}`)

it('the runtime keeps no socket of a pipe whose client has read it to its end', async () => {
  for (let stream = 0; stream < 20; stream += 1) {
    const answer = await ask(`/id.${stream}`)
    expect(await answer.text()).toBe('all')
  }
  const answer = await ask('/held')
  expect(await answer.json()).toEqual({ opened: 20, held: 0 })
})
