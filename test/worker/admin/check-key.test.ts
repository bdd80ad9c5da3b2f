import { describe, expect, it } from 'vitest'
import { checkKeyLimits } from '../../../src/worker/admin/check-key.ts'
import { refusalOf } from '../../support/refusal.ts'
import { catalogueOf } from '../../support/router-config.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const ROUTER = { catalogue: catalogueOf({ 'eu/nova/glm-5': {} }), now: () => NOW }

const check = (limits: Parameters<typeof checkKeyLimits>[0]) => checkKeyLimits(limits, ROUTER)

describe('the limits of a key', () => {
  it('may be left out, lifted, or ones that it can be used under', () => {
    expect(check({})).toBeUndefined()
    expect(check({ expires_at: null, models: null })).toBeUndefined()
    const models = ['glm-5', 'eu/glm-5', 'nova/glm-5', 'eu/nova/glm-5']
    expect(check({ expires_at: NOW + 1, models })).toBeUndefined()
  })

  it('do not end it before it begins', () => {
    expect(refusalOf(() => check({ expires_at: NOW }))).toEqual({
      code: 'invalid_request_error',
      message: '"expires_at" is in the past; DELETE ends a key at once.',
      param: 'expires_at',
    })
  })

  it.each(['glm-6', 'us/glm-5', 'auto'])('name no model without a route: %s', (selector) => {
    expect(refusalOf(() => check({ models: ['glm-5', selector] }))).toEqual({
      code: 'invalid_request_error',
      message: `No route answers the selector "${selector}" in \`models\`; GET /v1/models lists those that exist.`,
      param: 'models',
    })
  })
})
