import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { explainer } from '../../src/cli/failure.ts'
import { InputError } from '../../src/cli/verify/input-error.ts'

let printed = ''

beforeEach(() => {
  printed = ''
  vi.spyOn(console, 'error').mockImplementation((line: unknown) => {
    printed += `${String(line)}\n`
  })
})
afterEach(() => {
  vi.restoreAllMocks()
})

const explain = explainer({ told: [InputError] })

describe('the failure of a command', () => {
  test('is told by the message of an error that is made for it', () => {
    expect(explain(new InputError('x.json is no key'), [])).toBe(1)
    expect(printed).toBe('error: x.json is no key\n')
  })

  test('is told by the message of the system', () => {
    const error = Object.assign(new Error("EISDIR: illegal operation, read '/x'"), {
      syscall: 'read',
    })
    explain(error, [])
    expect(printed).toBe("error: EISDIR: illegal operation, read '/x'\n")
  })

  test('of any other kind is told by class, code and place, for its message may quote a key', () => {
    const error = Object.assign(new SyntaxError('"d": "secret" is not valid JSON'), {
      code: 'ERR_X',
    })
    expect(explainer({ told: [InputError], status: 2 })(error, [])).toBe(2)
    expect(printed).toMatch(
      /^error: this is a fault of the program: SyntaxError ERR_X\n {4}at .*failure\.test\.ts/,
    )
    expect(printed).not.toContain('secret')
  })

  test('does not control the terminal, and keeps lines and letters', () => {
    explain(new InputError('Grüße\u001b[2J\n    from the log\u202e'), [])
    expect(printed).toBe('error: Grüße?[2J\n    from the log?\n')
  })
})
