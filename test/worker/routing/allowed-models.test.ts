import { describe, expect, it } from 'vitest'
import { allowedAttempts } from '../../../src/worker/routing/allowed-models.ts'
import { planChat } from '../../../src/worker/routing/plan.ts'
import { refusalOf } from '../../support/refusal.ts'
import { catalogueOf } from '../../support/router-config.ts'

const CATALOGUE = catalogueOf({
  'eu/nova/glm': {},
  'us/nova/glm': {},
  'orbit/glm': {},
  'nova/oss': {},
})
const { attempts } = planChat(
  CATALOGUE,
  { model: 'glm', failover: ['oss'], reasoning: undefined },
  { order: (routes) => routes },
)

function allowed(...selectors: readonly string[]): string[] {
  return allowedAttempts(CATALOGUE, attempts, selectors).map(({ route }) => route.id)
}

describe('the models of a key', () => {
  it('leave a key without a list all attempts', () => {
    expect(allowedAttempts(CATALOGUE, attempts, null)).toBe(attempts)
  })

  it('keep the attempts whose routes a selector stands for, in their order', () => {
    expect(allowed('oss', 'us/glm')).toEqual(['us/nova/glm', 'nova/oss'])
    expect(allowed('orbit/glm')).toEqual(['orbit/glm'])
  })

  it('refuse a request of which nothing is left, also where no route answers a selector', () => {
    const refused = {
      code: 'model_not_allowed',
      message: 'This API key may not use the requested model; GET /v1/key lists those it may.',
      param: 'model',
    }
    expect(refusalOf(() => allowed('gone', 'nova/gone'))).toEqual(refused)
    expect(refusalOf(() => allowed())).toEqual(refused)
  })
})
