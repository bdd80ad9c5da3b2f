import { describe, expect, it } from 'vitest'
import { customerPath } from '../../../src/cli/admin/customer-changes.ts'
import { StartError } from '../../../src/host/stack/start-error.ts'

describe('the path of what a command is about', () => {
  it('has each id as one segment', () => {
    expect(customerPath('c1', 'keys', 'cmr_a/b?c')).toBe('/admin/customers/c1/keys/cmr_a%2Fb%3Fc')
  })

  it.each(['..', '.', ''])(
    'takes "%s" for no id: it would lead elsewhere, as from a key to its customer, which would be erased',
    (id) => {
      expect(() => customerPath('c1', 'keys', id)).toThrow(StartError)
      expect(() => customerPath('c1', 'keys', id)).toThrow(`"${id}" is no id`)
    },
  )
})
