import { describe, expect, it } from 'vitest'
import type { z } from 'zod'
import {
  customerChangesSchema,
  newCustomerSchema,
  newKeySchema,
} from '../../../src/worker/admin/bodies.ts'
import { issueText } from '../../../src/worker/admin/issue-text.ts'

const CUSTOMER = { name: 'Ada', billing: 'prepaid' }

function refusals(schema: z.ZodType, body: unknown): readonly string[] {
  const result = schema.safeParse(body, { error: issueText })
  return result.success ? [] : result.error.issues.map(({ message }) => message)
}

describe('a body of the admin interface that is refused', () => {
  it.each<[what: string, schema: z.ZodType, body: unknown, ...messages: string[]]>([
    [
      'nothing of',
      newCustomerSchema,
      {},
      '"name" is missing.',
      '"billing" is missing: it must be "prepaid" or "postpaid".',
    ],
    ['a list instead of', newCustomerSchema, [], 'The body must be an object.'],
    [
      'an unknown member in',
      newCustomerSchema,
      { ...CUSTOMER, balance: '5' },
      '"balance": there is no such member.',
    ],
    ['a number for a name in', newCustomerSchema, { ...CUSTOMER, name: 5 }, '"name" must be text.'],
    [
      'a long name in',
      newCustomerSchema,
      { ...CUSTOMER, name: 'a'.repeat(201) },
      '"name" must have at most 200 characters.',
    ],
    [
      'another way to pay in',
      newCustomerSchema,
      { ...CUSTOMER, billing: 'cash' },
      '"billing" must be "prepaid" or "postpaid".',
    ],
    [
      'text for a switch in',
      customerChangesSchema,
      { suspended: 'yes' },
      '"suspended" must be true or false.',
    ],
    [
      'a count of zero in',
      newKeySchema,
      { name: 'a', requests_per_minute: 0 },
      '"requests_per_minute" must be at least 1.',
    ],
    [
      'half a request in',
      newKeySchema,
      { name: 'a', requests_per_minute: 1.5 },
      '"requests_per_minute" must be a whole number.',
    ],
    [
      'no models in',
      newKeySchema,
      { name: 'a', models: [] },
      '"models" must have at least 1 entry.',
    ],
    [
      'a number among the models of',
      newKeySchema,
      { name: 'a', models: ['m', 5] },
      '"models.1" must be text.',
    ],
    [
      'a name of nothing in',
      newCustomerSchema,
      { ...CUSTOMER, name: '' },
      'Give text that is not empty and has no control characters.',
    ],
  ])('says of %s it what is wrong', (_what, schema, body, ...messages) => {
    expect(refusals(schema, body)).toEqual(messages)
  })
})
