import { describe, expect, it } from 'vitest'
import {
  BOOLEAN,
  integerFrom,
  NAME,
  oneOf,
  PAGE_SIZE,
  readParameter,
  SELECTOR,
  TIMESTAMP,
  type ParameterForm,
} from '../../../src/worker/http/query.ts'
import { refusalOf } from '../../support/refusal.ts'

function read<T>(query: string, form: ParameterForm<T>): T | undefined {
  return readParameter(new URLSearchParams(query), 'p', form)
}

const TYPE = oneOf(['chat', 'embedding'])

describe('readParameter', () => {
  it.each<[string, ParameterForm<unknown>, unknown]>([
    ['p=true', BOOLEAN, true],
    ['p=1', BOOLEAN, true],
    ['p=false', BOOLEAN, false],
    ['p=0', BOOLEAN, false],
    ['p=glm-5.1_x', NAME, 'glm-5.1_x'],
    ['p=eu%2Fnova/glm', SELECTOR, 'eu/nova/glm'],
    ['p=embedding', TYPE, 'embedding'],
    ['p=0', integerFrom(0), 0],
    ['p=007', integerFrom(1), 7],
    ['p=999999999999999', integerFrom(1), 999_999_999_999_999],
    ['p=100', PAGE_SIZE, 100],
    ['p=1001', PAGE_SIZE, 1000],
    [`p=${'9'.repeat(400)}`, PAGE_SIZE, 1000],
    ['p=2026-01-31T12:00:00Z', TIMESTAMP, Date.UTC(2026, 0, 31, 12)],
    ['p=2026-01-31t12:00:00.25z', TIMESTAMP, Date.UTC(2026, 0, 31, 12, 0, 0, 250)],
    ['p=2026-01-31T12:00:00.123456789Z', TIMESTAMP, Date.UTC(2026, 0, 31, 12, 0, 0, 123)],
    ['p=2026-01-31T12:00:00%2B02:00', TIMESTAMP, Date.UTC(2026, 0, 31, 10)],
    ['p=2026-01-31T12:00:00+02:00', TIMESTAMP, Date.UTC(2026, 0, 31, 10)],
    ['p=2026-01-31T12:00:00-05:30', TIMESTAMP, Date.UTC(2026, 0, 31, 17, 30)],
    ['p=2028-02-29T00:00:00Z', TIMESTAMP, Date.UTC(2028, 1, 29)],
  ])('reads %s', (query, form, value) => {
    expect(read(query, form)).toBe(value)
  })

  it('takes an absent parameter for undefined and ignores others', () => {
    expect(read('', NAME)).toBeUndefined()
    expect(read('q=%00&limit=x', NAME)).toBeUndefined()
  })

  it.each<[string, ParameterForm<unknown>]>([
    ['p=', BOOLEAN],
    ['p', BOOLEAN],
    ['p=True', BOOLEAN],
    ['p=yes', BOOLEAN],
    ['p=1&p=1', BOOLEAN],
    ['p=', NAME],
    ['p=a/b', NAME],
    ['p=%ff', NAME],
    ['p=%zz', NAME],
    ['p=eu&p=us', NAME],
    ['p=a/b/c/d', SELECTOR],
    ['p=a//b', SELECTOR],
    ['p=image', TYPE],
    ['p=Chat', TYPE],
    ['p=toString', TYPE],
    ['p=0', integerFrom(1)],
    ['p=-1', integerFrom(0)],
    ['p=1.0', integerFrom(0)],
    ['p=1e2', integerFrom(0)],
    ['p=+1', integerFrom(0)],
    ['p=1000000000000000', integerFrom(0)],
    ['p=0', PAGE_SIZE],
    ['p=-1', PAGE_SIZE],
    ['p=2026-01-31', TIMESTAMP],
    ['p=2026-01-31T12:00:00', TIMESTAMP],
    ['p=2026-02-30T12:00:00Z', TIMESTAMP],
    ['p=2026-13-01T12:00:00Z', TIMESTAMP],
    ['p=2026-01-31T24:00:00Z', TIMESTAMP],
    ['p=2026-01-31T12:00:00%2B24:00', TIMESTAMP],
    ['p=1767225600', TIMESTAMP],
    ['p=2026-01-31T12:00:00Z ', TIMESTAMP],
  ])('refuses %s', (query, form) => {
    expect(refusalOf(() => read(query, form))).toEqual({
      code: 'invalid_parameter',
      message: `The query parameter \`p\` must be ${form.expected}, given once.`,
      param: 'p',
    })
  })

  it('says what it expects', () => {
    expect(TYPE.expected).toBe('one of chat, embedding')
    expect(integerFrom(1).expected).toBe('a whole number of at least 1')
  })
})
