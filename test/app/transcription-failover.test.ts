import { afterAll, beforeAll, expect, test } from 'vitest'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { localConfig } from '../support/local-config.ts'
import { wav } from '../support/audio-samples.ts'
import { startStack, type Stack } from '../support/stack.ts'
import { standinOf } from '../support/standin.ts'

/** A first route that hangs leaves time for the next one, on transcription as on chat. */

let stack: Stack

beforeAll(async () => {
  const local = localConfig()
  const timeouts = { transcription_ms: 12_000 }
  stack = await startStack({ config: { ...local, service: { ...local.service, timeouts } } })
}, 120_000)
afterAll(() => stack.stop())

test('a hung first route is given up after half of the time, counted, and the next one answers', async () => {
  await standinOf(stack).script({ provider: 'standin', end: 'hang' })
  const form = new FormData()
  form.set('model', 'whisper-large-v3')
  form.set('language', 'en')
  form.set('response_format', 'verbose_json')
  form.set('file', new Blob([new Uint8Array(wav(1).bytes)]), 'a.wav')
  const answer = await stack.fetch('/v1/audio/transcriptions', { method: 'POST', body: form })
  expect(answer.status).toBe(200)
  expect(await answer.json()).toMatchObject({
    service: { requested_route: 'whisper-large-v3', routed_model: 'standin-two/whisper-large-v3' },
  })
  const admin = new AdminApi(stack.local.base_url, stack.local.admin_token)
  expect(await admin.call('GET', '/admin/routes')).toMatchObject({
    data: expect.arrayContaining([
      expect.objectContaining({
        route: 'standin/whisper-large-v3',
        errors: 1,
        last_failure: 'timeout',
      }),
    ]),
  })
}, 120_000)
