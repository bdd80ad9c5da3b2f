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
})
