import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { examplesOf, outputOf, type Example } from '../support/docs-examples.ts'
import { startStack, type Stack } from '../support/stack.ts'

/** The examples of the pages for callers, run as they stand. */

let stack: Stack

beforeAll(async () => {
  stack = await startStack()
}, 120_000)
afterAll(() => stack.stop())

function outputHere(example: Example): Promise<string> {
  const { base_url: BASE_URL, api_key: API_KEY } = stack.local
  return outputOf(example, { cwd: PROJECT_DIR, env: { ...process.env, BASE_URL, API_KEY } })
}

const QUICK_STARTS = examplesOf('quick-starts.md')

test('there is a quick start for each of the four ways', () => {
  expect(QUICK_STARTS.map(({ heading }) => heading)).toEqual([
    'curl',
    'OpenAI SDK',
    'AI SDK',
    'LangChain',
  ])
})

describe('a quick start', () => {
  test.each(QUICK_STARTS)('with $heading gets an answer', { timeout: 120_000 }, async (example) => {
    expect(await outputHere(example)).toContain('Hello from the stand-in provider')
  })
})

describe('the page about API formats', () => {
  const examples = examplesOf('api-formats.md').map((example, index) => ({ index, example }))

  test('shows the OpenAI SDK, the AI SDK and the Anthropic SDK', () => {
    const imported = examples.map(({ example }) => /from '([^']+)'/.exec(example.code)?.[1])
    expect(imported).toEqual(['openai', '@ai-sdk/openai', '@anthropic-ai/sdk'])
  })

  test.each(examples)('has an example that gets an answer: $index', async ({ example }) => {
    expect(await outputHere(example)).toContain('Hello from the stand-in provider')
  })
})

describe('the page about the interface', () => {
  test.each(examplesOf('api.md'))('has an example that works: $heading', async (example) => {
    expect(await outputHere(example)).not.toBe('')
  })

  test('names every endpoint that there is', async () => {
    const page = readFileSync(join(PROJECT_DIR, 'docs/api.md'), 'utf8')
    const { paths }: { paths: Record<string, object> } = await (
      await stack.fetch('/openapi.json')
    ).json()
    const missing = Object.keys(paths)
      .filter((path) => !path.startsWith('/admin/'))
      .filter((path) => !page.includes(path.replace('/{id}/evidence', '/{id}`, `…/evidence')))
    expect(missing).toEqual([])
  })
})

/** Headers of HTTP itself, and those that tell browsers what they may do. */
const COMMON =
  /^(content-|cache-control$|connection$|date$|keep-alive$|transfer-encoding$|vary$|allow$|etag$|referrer-policy$|strict-transport-security$|x-content-type-options$|access-control-|x-accel-buffering$)/

const documentSchema = z.looseObject({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.looseObject({
        parameters: z.array(z.looseObject({ name: z.string(), in: z.string() })).optional(),
      }),
    ),
  ),
})

/** What docs/api.md says of headers. */
function headersSection(): string {
  const page = readFileSync(join(PROJECT_DIR, 'docs/api.md'), 'utf8')
  return page.split('\n## Headers\n')[1]?.split('\n## ')[0]?.toLowerCase() ?? ''
}

test('docs/api.md names every header that an endpoint reads', async () => {
  const answer = await stack.fetch('/openapi.json')
  const { paths } = documentSchema.parse(await answer.json())
  const operations = Object.values(paths).flatMap((item) => Object.values(item))
  const read = operations.flatMap(({ parameters = [] }) =>
    parameters.filter((parameter) => parameter.in === 'header').map(({ name }) => name),
  )
  expect(read.length).toBeGreaterThan(5)
  const described = headersSection()
  const isUnnamed = (name: string) => !described.includes(`\`${name.toLowerCase()}\``)
  expect([...new Set(read)].filter(isUnnamed)).toEqual([])
})

test('docs/api.md names every header of answers besides the common ones', async () => {
  const headers = headersSection()
  const messages = [{ role: 'user', content: 'Hello!' }]
  const chat = (more: object, init: RequestInit = {}) => {
    const body = JSON.stringify({ model: 'glm-5', messages, ...more })
    return stack.fetch('/v1/chat/completions', { method: 'POST', body, ...init })
  }
  const once = { headers: { 'Idempotency-Key': '"header-names"' } }
  const answers = [
    await chat({}),
    await chat({ stream: true }),
    await chat({ mirostat: 2 }),
    await chat({}, once),
    await chat({}, once),
    await chat({}, { headers: { authorization: 'Bearer none' } }),
    await stack.fetch('/v1/responses', {
      method: 'POST',
      body: '{"model": "glm-5", "input": "Hi"}',
    }),
    await stack.fetch('/v1/models'),
    await stack.fetch('/attestation'),
  ]
  for (const answer of answers) await answer.text()
  const carried = new Set(answers.flatMap((answer) => [...answer.headers.keys()]))
  expect([...carried]).toContain('x-service-dropped-members')
  expect([...carried]).toContain('idempotency-replayed')
  const limits = 'x-ratelimit-'
  const unnamed = [...carried].filter(
    (name) =>
      !COMMON.test(name) &&
      !headers.includes(`\`${name}\``) &&
      !(name.startsWith(limits) && headers.includes(`\`${name.slice('x-ratelimit-limit'.length)}`)),
  )
  expect(unnamed).toEqual([])
})
