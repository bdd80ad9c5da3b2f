import { describe, expect, it } from 'vitest'
import { fullSelector, isName, isSelector, selectorOf } from '../../src/protocol/selector.ts'

describe('isName', () => {
  it.each(['glm-5', 'GPT_oss.120b', '0', '.', '..', 'auto'])('takes %j', (name) => {
    expect(isName(name)).toBe(true)
  })

  it.each(['', ' ', 'a b', 'a/b', 'ä', 'a\n', 'a%2Fb', 'a:b'])('refuses %j', (name) => {
    expect(isName(name)).toBe(false)
  })
})

describe('isSelector', () => {
  it.each(['glm', 'eu/glm', 'eu/nova/glm'])('takes the form %j', (selector) => {
    expect(isSelector(selector)).toBe(true)
  })

  it.each(['', '/', 'glm/', '/glm', 'eu//glm', 'a/b/c/d', 'eu/nova/g m', 'a/b/c/'])(
    'refuses %j',
    (selector) => {
      expect(isSelector(selector)).toBe(false)
    },
  )
})

describe('selectorOf and fullSelector', () => {
  it('leave out what is undefined', () => {
    expect(selectorOf(undefined, 'nova', 'glm')).toBe('nova/glm')
    expect(fullSelector({ modelKey: 'glm', provider: 'nova', region: undefined })).toBe('nova/glm')
  })

  it('put the region first and the model key last', () => {
    expect(fullSelector({ modelKey: 'glm', provider: 'nova', region: 'eu' })).toBe('eu/nova/glm')
  })
})
