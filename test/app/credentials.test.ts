import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { errorOf } from '../support/answers.ts'
import { startStack, type Stack } from '../support/stack.ts'

/** The table of endpoints, read as text: it cannot be loaded outside the worker's own platform. */
const SOURCE = readFileSync(join(PROJECT_DIR, 'src/worker/endpoints.ts'), 'utf8')
const ROWS = [...SOURCE.matchAll(/\['(GET|POST|DELETE)', '([^']+)', '[^']+', [\w.]+\]/g)].map(
  ([, method = '', path = '']) => ({ method, path: path.replaceAll(/:\w+[+?]?/g, 'x') }),
)
const ADMIN = ROWS.filter(({ path }) => path.startsWith('/admin/'))
const KEYED = ROWS.filter(({ path }) => /^\/v1\/(?!models)/.test(path))

let stack: Stack

beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack.stop())

async function codeFor(
  { method, path }: { readonly method: string; readonly path: string },
  authorization: string | undefined,
): Promise<string> {
  const headers = authorization === undefined ? {} : { authorization }
  const answer = await fetch(stack.local.base_url + path, { method, headers })
  return `${answer.status} ${(await errorOf(answer)).code}`
}

describe('without the right credentials', () => {
  test('the table of endpoints is read', () => {
    expect(ADMIN.length).toBeGreaterThan(10)
    expect(KEYED.length).toBe(5)
  })

  test.each(ADMIN)('nobody is let in: $method $path', async (endpoint) => {
    const { admin_token: token, api_key: key } = stack.local
    const wrong = [undefined, `Bearer ${key}`, `Bearer ${token.slice(0, -1)}`, `Bearer ${token}x`]
    for (const authorization of [...wrong, token, `Basic ${token}`, 'Bearer ', `Bearer  ${key}`]) {
      expect(await codeFor(endpoint, authorization)).toBe('401 unauthorized')
    }
    const path = `${endpoint.path}?token=${token}&access_token=${token}`
    expect(await codeFor({ ...endpoint, path }, undefined)).toBe('401 unauthorized')
  })

  test.each(KEYED)('nobody is let in: $method $path', async (endpoint) => {
    const { admin_token: token, api_key: key } = stack.local
    const parts = key.split('_')
    const wrong = [
      undefined,
      `Bearer ${token}`,
      `Bearer ${key}0`,
      `Bearer ${key.slice(0, -1)}`,
      `Bearer ${parts.slice(0, 3).join('_')}`,
      `Bearer ${parts.with(1, 'x'.repeat(parts[1]?.length ?? 0)).join('_')}`,
      `Bearer ${key.toUpperCase()}`,
      `Basic ${key}`,
      key,
    ]
    for (const authorization of wrong) {
      expect(await codeFor(endpoint, authorization)).toBe('401 unauthorized')
    }
  })
})
