import { describe, expect, test } from 'vitest'
import { utf8, type Bytes } from '../../../src/protocol/bytes.ts'
import { parseChatRequest } from '../../../src/worker/completion/request.ts'
import { parseEmbeddingsRequest } from '../../../src/worker/embeddings/request.ts'
import { parseMessagesRequest } from '../../../src/worker/messages/request.ts'
import { parseResponsesRequest } from '../../../src/worker/responses/request.ts'
import { refusalOf } from '../../support/refusal.ts'

describe.each<[string, (body: Bytes) => unknown, object]>([
  ['/v1/chat/completions', parseChatRequest, { messages: [{ role: 'user', content: 'a' }] }],
  ['/v1/responses', parseResponsesRequest, { input: 'a', client_metadata: {} }],
  ['/v1/messages', parseMessagesRequest, { messages: [{ role: 'user', content: 'a' }], betas: [] }],
  ['/v1/embeddings', parseEmbeddingsRequest, { input: 'a' }],
])('a body of %s', (_, parse, members) => {
  const withUnknown = (count: number) => {
    const unknown = Array.from({ length: count }, (_none, index) => [`unknown${index}`, 1])
    return utf8(JSON.stringify({ model: 'm', ...members, ...Object.fromEntries(unknown) }))
  }

  test('may have 256 members that the router does not know', () => {
    expect(() => parse(withUnknown(256))).not.toThrow()
  })

  test('is refused with one more', () => {
    expect(refusalOf(() => parse(withUnknown(257)))).toEqual({
      code: 'invalid_request_error',
      message: 'The request body has too many members that the router does not know.',
    })
  })
})
