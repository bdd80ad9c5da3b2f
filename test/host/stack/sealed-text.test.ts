import { describe, expect, test } from 'vitest'
import { SealedText } from '../../../src/host/stack/sealed-text.ts'

describe('SealedText', () => {
  test('puts every secret where its placeholder stood', () => {
    const sealed = new SealedText()
    const text = `a ${sealed.seal('first\nsecret')} b ${sealed.seal('zweites Geheimnis: ü')} c`
    expect(text).not.toMatch(/secret|Geheimnis/)
    const unsealed = sealed.unseal(Buffer.from(text)).toString()
    expect(unsealed).toBe('a first\nsecret b zweites Geheimnis: ü c')
  })

  test('refuses bytes that lack a placeholder or have it twice', () => {
    const sealed = new SealedText()
    const placeholder = sealed.seal('some secret')
    const message = 'a sealed text is not in the compiled configuration exactly once'
    expect(() => sealed.unseal(Buffer.from('nothing'))).toThrow(message)
    expect(() => sealed.unseal(Buffer.from(placeholder + placeholder))).toThrow(message)
  })
})
