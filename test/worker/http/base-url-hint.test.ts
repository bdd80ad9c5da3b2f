import { describe, expect, it } from 'vitest'
import { baseUrlHint } from '../../../src/worker/http/base-url-hint.ts'

const SERVED = [
  '/v1/chat/completions',
  '/v1/messages',
  '/v1/models',
  '/v1/models/:id+',
  '/v1/receipts/:id',
]

const FOLLOWED_BY_V1 =
  'It must be the address of this router followed by /v1, without the path of an endpoint.'

describe('a request under a wrong base URL', () => {
  it.each([
    ['without /v1', '/chat/completions', '/v1/chat/completions'],
    ['without /v1, for a model', '/models/eu/glm-5', '/v1/models/eu/glm-5'],
    ['with /v1 twice', '/v1/v1/chat/completions', '/v1/chat/completions'],
    ['with a path in front', '/api/v1/models', '/v1/models'],
    ['with a slash at its end', '/v1//chat/completions', '/v1/chat/completions'],
    ['with the endpoint', '/v1/chat/completions/chat/completions', '/v1/chat/completions'],
    ['with an endpoint, for another', '/v1/chat/completions/models', '/v1/models'],
  ])('%s learns the right one', (_case, path, meant) => {
    expect(baseUrlHint(path, SERVED)).toBe(
      `This endpoint is at ${meant}: check the base URL of your client. ${FOLLOWED_BY_V1}`,
    )
  })

  it.each(['/messages', '/v1/v1/messages', '/v1/messages/v1/messages'])(
    "learns at %s that Anthropic's libraries add /v1 themselves",
    (path) => {
      expect(baseUrlHint(path, SERVED)).toBe(
        "This endpoint is at /v1/messages: check the base URL of your client. It must be the address of this router without any path, for Anthropic's libraries, which add /v1 themselves.",
      )
    },
  )

  it('is looked for behind a few segments only, because each one costs a comparison of the rest', () => {
    expect(baseUrlHint(`${'/v1'.repeat(7)}/models`, SERVED)).toContain('/v1/models')
    expect(baseUrlHint(`${'/v1'.repeat(9)}/models`, SERVED)).toBeUndefined()
  })

  it.each(['/', '/v1', '/v1/chat', '/v1/chat/completions/more', '/admin/models', '/favicon.ico'])(
    'is not presumed at %s',
    (path) => {
      expect(baseUrlHint(path, SERVED)).toBeUndefined()
    },
  )
})
