import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { parseChatRequest } from '../../../src/worker/completion/request.ts'
import { parseEmbeddingsRequest } from '../../../src/worker/embeddings/request.ts'
import { constraintsOf } from '../../../src/worker/http/attestation-member.ts'
import { parseMessagesRequest } from '../../../src/worker/messages/request.ts'
import { buildChatBody } from '../../../src/worker/provider/chat-body.ts'
import { parseResponsesRequest } from '../../../src/worker/responses/request.ts'
import { refusalOf } from '../../support/refusal.ts'
import { pricedRoute } from '../../support/routes.ts'

const QUESTION = '"messages":[{"role":"user","content":"Hi"}]'

/** What each endpoint reads of a body with these members. */
const ENDPOINTS = {
  chat: (members: string) => parseChatRequest(utf8(`{"model":"m",${QUESTION},${members}}`)),
  messages: (members: string) =>
    parseMessagesRequest(utf8(`{"model":"m","max_tokens":9,${QUESTION},${members}}`)).chat,
  responses: (members: string) =>
    parseResponsesRequest(utf8(`{"model":"m","input":"Hi",${members}}`)).chat,
  embeddings: (members: string) =>
    parseEmbeddingsRequest(utf8(`{"model":"m","input":"Hi",${members}}`)),
}

const MALFORMED = {
  code: 'invalid_attestation_constraint',
  message:
    '"attestation" must be an object with "min", "providers" or "evidence_sha256", and nothing else (docs/api.md).',
  param: 'attestation',
}
const REPEATED = {
  ...MALFORMED,
  message: 'The request body has "attestation" more than once.',
}

describe.each(Object.entries(ENDPOINTS))('attestation at the endpoint of %s', (_name, read) => {
  it('is read, and is null or absent where nothing is required', () => {
    const required = '"attestation":{"providers":["vega","nova"],"min":"hardware"}'
    expect(read(required).constraints).toEqual({ min: 'hardware', providers: ['nova', 'vega'] })
    expect(read('"\\u0061ttestation":{"min":"hardware"}').constraints).toEqual({ min: 'hardware' })
    expect(read('"attestation":null').constraints).toBe(undefined)
    expect(read('"user":"u"').constraints).toBe(undefined)
  })

  it.each([
    '"hardware"',
    'true',
    '[]',
    '{}',
    '{"min":null}',
    '{"min":"Hardware"}',
    '{"min":"hardware","max":"none"}',
    '{"min":"hardware","min":"none"}',
    '{"min":"hardware","\\u006din":"none"}',
    '{"providers":"nova"}',
    '{"providers":[]}',
    '{"evidence_sha256":["AB"]}',
  ])('is refused as %s', (value) => {
    expect(refusalOf(() => read(`"attestation":${value}`))).toEqual(MALFORMED)
  })

  it('is refused unread where it is longer than any could be', () => {
    const padding = ' '.repeat(64 * 1024)
    expect(refusalOf(() => read(`"attestation":{"min":"hardware"${padding}}`))).toEqual(MALFORMED)
  })

  it.each([
    '"attestation":{"min":"hardware"},"attestation":{"min":"none"}',
    '"attestation":{"min":"hardware"},"attestation":null',
    '"attestation":null,"\\u0061ttestation":{"min":"hardware"}',
  ])('is refused twice: %s', (members) => {
    expect(refusalOf(() => read(members))).toEqual(REPEATED)
  })
})

describe.each(Object.entries(ENDPOINTS))(
  'an unknown member at the endpoint of %s',
  (_name, read) => {
    it.each([
      'Attestation',
      'attestations',
      'atestation',
      'attestaiton',
      'ATTESTATION',
      ' attestation',
      'min_attestation',
      'attestation_constraints',
      'attestation[min]',
      'Confidential',
      'evidence_sha256',
      'providers',
      'min',
      'X-Service-Require',
    ])('is refused as %j, which may be meant as "attestation", unless it is null', (name) => {
      const member = JSON.stringify(name)
      expect(refusalOf(() => read(`${member}:{"min":"hardware"}`))).toEqual(
        mistaken(name.startsWith(' ') ? 'A member' : `"${name}"`),
      )
      expect(read(`${member}:null`).constraints).toBe(undefined)
    })

    it('of any other name is not', () => {
      const others = ['attention', 'annotations', 'verbosity', 'min_p', 'provider', 'service_tier']
      const members = others.map((name) => `"${name}":true`).join()
      expect(read(members).constraints).toBe(undefined)
    })

    it('that is long, or of odd characters, is refused without its name', () => {
      expect(refusalOf(() => read(`"${'attest'.repeat(99)}":1`))).toEqual(mistaken('A member'))
      expect(refusalOf(() => read('"\u0430ttestation":1'))).toEqual(mistaken('A member'))
    })
  },
)

function mistaken(what: string) {
  const message = `${what} is unknown here and may be meant as "attestation". What the provider must meet is given there, under exactly this name (docs/api.md).`
  return { code: 'invalid_attestation_constraint', message, param: 'attestation' }
}

describe('attestation', () => {
  it('is forwarded by no route, whichever members it forwards', () => {
    const chat = ENDPOINTS.chat('"attestation":{"min":"hardware"},"top_p":0.5')
    const route = pricedRoute(undefined, { forward: ['attestation', 'min_p'] })
    const body = new TextDecoder().decode(buildChatBody(chat, route, undefined, undefined))
    expect(JSON.parse(body)).toEqual({
      model: 'zai-org/GLM-5',
      messages: [{ role: 'user', content: 'Hi' }],
      top_p: 0.5,
    })
  })

  it('of a header is that of a body, in whatever case the header is named', () => {
    const headers = new Headers({ 'x-SERVICE-require': 'providers=nova ; min=hardware' })
    const required = { min: 'hardware' as const, providers: ['nova'] }
    expect(constraintsOf(undefined, headers)).toEqual(required)
    expect(constraintsOf(required, headers)).toEqual(required)
    expect(constraintsOf(required, new Headers())).toBe(required)
    expect(refusalOf(() => constraintsOf({ min: 'hardware' }, headers))).toEqual({
      code: 'invalid_request_error',
      message: 'The header X-Service-Require and "attestation" of the body say different things.',
      param: 'attestation',
    })
  })

  it.each(['', 'hardware', 'min=HARDWARE', 'MIN=hardware', 'min=hardware, min=none'])(
    'of a header is refused as %j',
    (text) => {
      const headers = new Headers({ 'X-Service-Require': text })
      expect(refusalOf(() => constraintsOf(undefined, headers))).toEqual({
        code: 'invalid_attestation_constraint',
        message:
          'The header X-Service-Require must be of the form "min=hardware; providers=nova,vega; evidence_sha256=<hex>", one of them at least.',
        param: 'X-Service-Require',
      })
    },
  )

  it.each([
    'X-Service-Required',
    'X-Service-Requires',
    'X-Service-Requirements',
    'X-Service-Reqiure',
    'X-Services-Require',
    'Service-Require',
    'X-Service-Attestation',
    'X-Service-Min-Attestation',
    'X-Service-Constraints',
    'X-Service-Providers',
  ])('is refused in a header that may be meant as X-Service-Require: %s', (name) => {
    const headers = new Headers({ [name]: 'min=hardware' })
    expect(refusalOf(() => constraintsOf(undefined, headers))).toEqual({
      code: 'invalid_attestation_constraint',
      message: `The header "${name.toLowerCase()}" is unknown here and may be meant as X-Service-Require (docs/api.md).`,
      param: 'X-Service-Require',
    })
  })

  it('is not missed where other headers are sent', () => {
    const names = ['X-Service-Receipt', 'X-Service-Region', 'X-Required-By', 'Accept-Language']
    const headers = new Headers(names.map((name) => [name, 'x']))
    expect(constraintsOf(undefined, headers)).toBe(undefined)
  })
})
