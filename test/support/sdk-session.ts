import { afterAll, beforeAll, expect } from 'vitest'
import { createSchemaCheck, type SchemaCheck } from './openapi.ts'
import { startStack, type Stack } from './stack.ts'

/** What a client library is given: the address, a key, and a fetch that records its exchanges. */
export interface SdkSession {
  readonly stack: Stack
  readonly baseURL: string
  readonly apiKey: string
  readonly fetch: typeof fetch
}

/**
 * A stack for the tests of one client library. Every answer that the library receives is checked against the format's
 * published schemas, and the last hook fails on any that does not fit.
 */
export function useSdkSession(): () => SdkSession {
  let stack: Stack
  let check: SchemaCheck

  beforeAll(async () => {
    stack = await startStack()
    check = createSchemaCheck()
  })
  afterAll(async () => {
    await stack.stop()
    const { problems, checked } = await check.result()
    expect(problems).toEqual([])
    expect(checked).toBeGreaterThan(0)
  })
  return () => ({
    stack,
    baseURL: `${stack.local.base_url}/v1`,
    apiKey: stack.local.api_key,
    fetch: check.fetch,
  })
}
