import { expect, it } from 'vitest'
import { OwnSignal } from '../../../src/worker/calls/own-signal.ts'
import { HttpCalls } from '../../../src/worker/link/link-calls.ts'

it('a call over HTTP has the platform’s form of its signal, and none where it has no signal', async () => {
  const inits: unknown[] = []
  const calls = new HttpCalls({
    fetch: async (_url, init) => {
      inits.push(init)
      return new Response('answer')
    },
  })
  const signal = new OwnSignal()
  const answer = await calls.fetch('https://enclave/v1/sign', { method: 'POST', signal })
  await calls.fetch('https://enclave/v1/state', { hasSmallAnswer: true })
  expect(await answer.text()).toBe('answer')
  expect(inits).toEqual([{ method: 'POST', signal: signal.ofPlatform() }, {}])
  signal.abort(new Error('too late'))
  expect(inits[0]).toMatchObject({ signal: { aborted: true } })
})
