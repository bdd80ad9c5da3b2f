import { describe, expect, test } from 'vitest'
import { readSettings } from '../../../src/host/stack/settings.ts'
import { StartError } from '../../../src/host/stack/start-error.ts'

describe('the settings of npm start', () => {
  test.each(['hunter2 rest', 'hunter2\nrest', 'hunter2ü', 'hunter2\u0000'])(
    'have no admin token %j, which no request can have; it is not quoted',
    (token) => {
      const attempt = () => readSettings({ ADMIN_TOKEN: token })
      const message =
        'ADMIN_TOKEN: has a space, a line break or another character that no bearer token may have'
      expect(attempt).toThrow(StartError)
      expect(attempt).toThrow(expect.objectContaining({ message }))
    },
  )

  test('have no address of another database for PostgreSQL; it is not quoted, and read for no other engine', () => {
    const others = { DATABASE_URL: 'mysql://u:hunter2@db/x' }
    const attempt = () => readSettings({ ...others, STORAGE: 'postgres' })
    const message =
      'DATABASE_URL: is not an address of PostgreSQL: postgres://<user>:<password>@<host>/<database>'
    expect(attempt).toThrow(StartError)
    expect(attempt).toThrow(expect.objectContaining({ message }))
    expect(readSettings(others).storage).toEqual({ engine: 'durable-object' })
    const secret = 'postgresql://u:p@db/x'
    const settings = readSettings({ STORAGE: 'postgres', DATABASE_URL: secret })
    expect(settings.storage).toEqual({ engine: 'postgres', secret })
  })
})
