import { describe, expect, it } from 'vitest'
import type { Catalogue } from '../../../src/worker/routing/catalogue.ts'
import { planChat, type ChatRoutingCriteria } from '../../../src/worker/routing/plan.ts'
import { refusalOf } from '../../support/refusal.ts'
import { catalogueOf, reasoningOf } from '../../support/router-config.ts'

const CATALOGUE = catalogueOf(
  {
    'eu/nova/glm': { reasoning: reasoningOf('medium', 'off', 'high') },
    'us/nova/glm': { reasoning: reasoningOf('low', 'high', 'max') },
    'eu/orbit/glm': {},
    'eu/orbit/oss': { reasoning: reasoningOf('low') },
    'nova/free': { pricing: undefined },
    'orbit/mixed': { pricing: undefined, reasoning: reasoningOf('high') },
    'nova/mixed': {},
    'eu/nova/page': { ocr: true },
    'orbit/page2': { ocr: true, reasoning: reasoningOf('high') },
    'nova/whisper': { type: 'transcription' },
    'nova/embed': { type: 'embedding' },
  },
  { auto: ['oss', 'us/glm'] },
)

function plan(
  criteria: Partial<ChatRoutingCriteria> & { model: string },
  catalogue: Catalogue = CATALOGUE,
) {
  const whole = { failover: [], reasoning: undefined, ...criteria }
  return planChat(catalogue, whole, { order: (routes) => routes })
}

/** `route id, entry, effort` of each attempt, short enough to read. */
function attemptsOf(...args: Parameters<typeof plan>): string[] {
  return plan(...args).attempts.map(
    ({ route, entry, effort }) => `${route.id} ${entry} ${effort ?? '-'}`,
  )
}

describe('a plan', () => {
  it('tries the candidates of the primary with their own default efforts', () => {
    expect(attemptsOf({ model: 'glm' })).toEqual([
      'eu/nova/glm 0 medium',
      'us/nova/glm 0 low',
      'orbit/glm 0 -',
    ])
  })

  it('never leaves a pin', () => {
    expect(attemptsOf({ model: 'us/glm' })).toEqual(['us/nova/glm 0 low'])
    expect(attemptsOf({ model: 'eu/nova/glm' })).toEqual(['eu/nova/glm 0 medium'])
    expect(attemptsOf({ model: 'eu/orbit/glm' })).toEqual(['orbit/glm 0 -'])
  })

  it('tries failover entries in order behind the primary, each route once', () => {
    expect(
      attemptsOf({ model: 'us/nova/glm', failover: ['oss', 'nova/glm', 'oss', 'glm'] }),
    ).toEqual(['us/nova/glm 0 low', 'orbit/oss 1 low', 'eu/nova/glm 2 medium', 'orbit/glm 4 -'])
  })

  it('flags only the attempts of the entries that the caller listed', () => {
    const { attempts } = plan({ model: 'nova/glm', failover: ['oss'] })
    expect(attempts.map(({ failover }) => failover)).toEqual([false, false, true])
  })

  it('orders the candidates of each selector by what it is given, and only them', () => {
    const asked: string[][] = []
    const order = (routes: Catalogue['routes']) => {
      asked.push(routes.map(({ id }) => id))
      return routes.toReversed()
    }
    const criteria = { model: 'glm', failover: ['oss'], reasoning: 'high' } as const
    const { attempts } = planChat(CATALOGUE, criteria, { order })
    expect(asked).toEqual([['eu/nova/glm', 'us/nova/glm']])
    expect(attempts.map(({ route }) => route.id)).toEqual(['us/nova/glm', 'eu/nova/glm'])
  })

  it.each([
    ['glm', 'glm'],
    ['eu/glm', 'eu/glm'],
    ['nova/glm', 'nova/glm'],
    ['us/nova/glm', 'us/nova/glm'],
    ['orbit/glm', 'orbit/glm'],
    ['eu/orbit/glm', 'orbit/glm'],
    ['auto', 'auto'],
  ])('says that %s asked for %s', (model, requestedRoute) => {
    expect(plan({ model }).requestedRoute).toBe(requestedRoute)
  })
})

describe('auto', () => {
  it('tries the approved selectors in order as the primary', () => {
    expect(attemptsOf({ model: 'auto' })).toEqual(['orbit/oss 0 low', 'us/nova/glm 0 low'])
  })

  it('is taken as a failover entry', () => {
    expect(attemptsOf({ model: 'orbit/glm', failover: ['auto'] })).toEqual([
      'orbit/glm 0 -',
      'orbit/oss 1 low',
      'us/nova/glm 1 low',
    ])
  })

  it('is unknown where the operator approved nothing', () => {
    const bare = catalogueOf({ 'nova/glm': {} })
    const message =
      'No route answers the selector in `model`; GET /v1/models lists those that exist.'
    expect(refusalOf(() => plan({ model: 'auto' }, bare))).toEqual({
      code: 'model_not_found',
      message,
      param: 'model',
    })
  })

  it('stays within the approved set when an effort drops some', () => {
    expect(attemptsOf({ model: 'auto', reasoning: 'max' })).toEqual(['us/nova/glm 0 max'])
  })
})

const unknown = (param: string) =>
  `No route answers the selector in \`${param}\`; GET /v1/models lists those that exist.`

describe('a plan refuses', () => {
  it.each([
    ['an unknown model', { model: 'gpt' }, 'model'],
    ['a pin that does not exist', { model: 'us/orbit/glm' }, 'model'],
    ['an unknown failover entry', { model: 'glm', failover: ['oss', 'gpt'] }, 'failover'],
  ])('%s', (_, criteria, param) => {
    const expected = { code: 'model_not_found', message: unknown(param), param }
    expect(refusalOf(() => plan(criteria))).toEqual(expected)
  })

  it.each([
    ['a transcription model', { model: 'whisper' }, 'model'],
    ['an embedding model', { model: 'nova/embed' }, 'model'],
    ['one as a failover entry', { model: 'glm', failover: ['embed'] }, 'failover'],
  ])('%s', (_, criteria, param) => {
    const message = `The model in \`${param}\` is not a chat model.`
    expect(refusalOf(() => plan(criteria))).toEqual({
      code: 'invalid_request_error',
      message,
      param,
    })
  })

  it.each([
    ['an effort that no candidate has', { model: 'glm', reasoning: 'minimal' }],
    ['an effort that only routes beyond the pin have', { model: 'eu/nova/glm', reasoning: 'max' }],
    ['off where no reasoning is published', { model: 'orbit/glm', reasoning: 'off' }],
    ['off where the ladder lacks it', { model: 'oss', reasoning: 'off' }],
  ] as const)('%s', (_, criteria) => {
    expect(refusalOf(() => plan(criteria))).toEqual({
      code: 'invalid_request_error',
      message: `No route of the requested models supports the reasoning effort '${criteria.reasoning}'.`,
      param: 'reasoning',
    })
  })

  it.each([
    ['a model without any price', { model: 'free' }],
    ['a model whose only able route has no price', { model: 'mixed', reasoning: 'high' }],
  ] as const)('%s', (_, criteria) => {
    expect(refusalOf(() => plan(criteria))).toEqual({
      code: 'route_not_priced',
      message: 'No route of the requested model has a price.',
      param: undefined,
    })
  })
})

describe('capability', () => {
  it('asks for the effort of the caller where the route has it', () => {
    expect(attemptsOf({ model: 'glm', reasoning: 'high' })).toEqual([
      'eu/nova/glm 0 high',
      'us/nova/glm 0 high',
    ])
    expect(attemptsOf({ model: 'glm', reasoning: 'off' })).toEqual(['eu/nova/glm 0 off'])
  })

  it('drops incompatible candidates from the whole plan', () => {
    const criteria = { model: 'orbit/glm', failover: ['oss', 'glm'], reasoning: 'max' } as const
    expect(attemptsOf(criteria)).toEqual(['us/nova/glm 2 max'])
  })

  it('skips routes without a price while others have one', () => {
    expect(attemptsOf({ model: 'mixed' })).toEqual(['nova/mixed 0 -'])
    expect(attemptsOf({ model: 'free', failover: ['oss'] })).toEqual(['orbit/oss 1 low'])
  })
})

describe('document OCR', () => {
  it('is decided by the primary', () => {
    expect(plan({ model: 'page' }).ocr).toBe(true)
    expect(plan({ model: 'glm', failover: ['page'] }).ocr).toBe(false)
  })

  it('skips the entries that do not fit', () => {
    expect(attemptsOf({ model: 'page', failover: ['glm', 'page2'] })).toEqual([
      'nova/page 0 -',
      'orbit/page2 2 high',
    ])
    expect(attemptsOf({ model: 'oss', failover: ['page'] })).toEqual(['orbit/oss 0 low'])
  })

  it('leaves the refusal of reasoning to the rules of OCR', () => {
    expect(attemptsOf({ model: 'page', reasoning: 'high' })).toEqual(['nova/page 0 -'])
  })
})
