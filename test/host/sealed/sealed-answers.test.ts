import { expect, test } from 'vitest'
import type { DaemonLink } from '../../../src/host/sealed/daemon-link.ts'
import { createSealedAnswers, sealed } from '../../../src/host/sealed/sealed-answers.ts'
import { openSealedServer } from '../../../src/host/sealed/sealed-server.ts'
import { makeLinkCertificates } from '../../../src/host/stack/link-certificates.ts'

/** What a router that waits for its secrets answers, in the format of the client. */

const unasked = () => Promise.reject(new Error('the daemon is not asked'))
const link: DaemonLink = { get: unasked, post: unasked, close: () => {} }
const answers = createSealedAnswers(link)

test.each(['/v1/messages', '/v1/messages/count_tokens'])('%s is sealed in its own form', (path) => {
  const { status, body, headers } = sealed(path)
  expect([status, headers?.['retry-after']]).toEqual([503, '5'])
  expect(JSON.parse(body)).toEqual({
    type: 'error',
    error: { type: 'overloaded_error', message: 'This router waits for its secrets.' },
  })
})

test('everything else is sealed in the form of the OpenAI format', async () => {
  const answer = await answers.get(new URL('https://sealed/v1/chat/completions'), '')
  expect([answer.status, answer.headers?.['retry-after']]).toEqual([503, '5'])
  expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'sealed', type: 'server_error' } })
  const messages = await answers.get(new URL('https://sealed/v1/messages?beta=true'), '')
  expect(JSON.parse(messages.body)).toMatchObject({ error: { type: 'overloaded_error' } })
})

test('who posts a message is told so, too', async () => {
  const server = await openSealedServer((await makeLinkCertificates(Date.now())).server, link)
  const url = `http://127.0.0.1:${server.ports.http}/v1/messages?beta=true`
  const answer = await fetch(url, { method: 'POST', body: '{}' })
  expect(answer.status).toBe(503)
  expect(await answer.json()).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } })
  server.close()
})
