import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { startStack, type Stack } from '../support/stack.ts'

/** Loaded by its name, because its types are those of the worker's platform. */
const table: unknown = await import(join(PROJECT_DIR, 'src/worker/endpoints.ts'))
const rowSchema = z.object({ method: z.string(), path: z.string(), audience: z.string() })
const { ENDPOINTS } = z.object({ ENDPOINTS: z.array(rowSchema) }).parse(table)

/** The router's own table, with something in the place of each parameter. */
const ROWS = ENDPOINTS.map(({ method, path, audience }) => ({
  method,
  path: path.replaceAll(/:\w+[+?]?/g, 'x'),
  audience,
}))
const ADMIN = ROWS.filter(({ audience }) => audience === 'admin')
const KEYED = ROWS.filter(({ audience }) => audience === 'keyed')

let stack: Stack

beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack.stop())

/** Both forms of an error; that of `/v1/messages` has no code. */
const errorSchema = z.object({ error: z.object({ type: z.string(), code: z.string().optional() }) })
const REFUSED: Readonly<Record<string, string>> = { authentication_error: 'unauthorized' }

async function codeFor(
  { method, path }: { readonly method: string; readonly path: string },
  authorization: string | undefined,
): Promise<string> {
  const headers = authorization === undefined ? {} : { authorization }
  const answer = await fetch(stack.local.base_url + path, { method, headers })
  const { error } = errorSchema.parse(await answer.json())
  return `${answer.status} ${error.code ?? REFUSED[error.type]}`
}

describe('without the right credentials', () => {
  test('the table has endpoints of both kinds', () => {
    expect(ADMIN.length).toBeGreaterThan(10)
    expect(KEYED.length).toBeGreaterThan(5)
  })

  test.each(ADMIN)('is refused: $method $path', async (endpoint) => {
    const { admin_token: token, api_key: key } = stack.local
    const wrong = [undefined, `Bearer ${key}`, `Bearer ${token.slice(0, -1)}`, `Bearer ${token}x`]
    for (const authorization of [...wrong, token, `Basic ${token}`, 'Bearer ', `Bearer  ${key}`]) {
      expect(await codeFor(endpoint, authorization)).toBe('401 unauthorized')
    }
    const path = `${endpoint.path}?token=${token}&access_token=${token}`
    expect(await codeFor({ ...endpoint, path }, undefined)).toBe('401 unauthorized')
  })

  test.each(KEYED)('is refused: $method $path', async (endpoint) => {
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
