import { afterAll, beforeAll, expect, it } from 'vitest'
import { setTimeout as delay } from 'node:timers/promises'
import { bundleForWorkerd } from '../../support/bundle.ts'
import { RawClient, rawRequest } from '../../support/raw-client.ts'
import { startWorkerd, type WorkerdProcess } from '../../support/workerd.ts'

let workerd: WorkerdProcess

beforeAll(async () => {
  const script = await bundleForWorkerd('test/support/worker/pipes-worker.ts')
  workerd = await startWorkerd({ script, text: {}, pipes: true })
}, 60_000)
afterAll(() => workerd.stop())

const ask = (path: string) => fetch(`http://127.0.0.1:${workerd.port}${path}`)
const heldNow = async (): Promise<unknown> => (await ask('/held')).json()

it('the runtime keeps no socket of a pipe whose client has read it to its end', async () => {
  for (let stream = 0; stream < 20; stream += 1) {
    const answer = await ask(`/id.${stream}`)
    expect(await answer.text()).toBe('all')
  }
  expect(await heldNow()).toEqual({ opened: 20, held: 0 })
})

it.each([0, 1, 2])(
  'nor of one whose client has reset its connection after %i ms, about when the pipe opens',
  async (ms) => {
    for (let stream = 0; stream < 20; stream += 1) {
      const client = await RawClient.connect(`http://127.0.0.1:${workerd.port}`)
      client.send(rawRequest('GET', `/left.${stream}`, {}))
      await delay(ms)
      client.reset()
    }
    await expect.poll(heldNow).toMatchObject({ held: 0 })
  },
)
