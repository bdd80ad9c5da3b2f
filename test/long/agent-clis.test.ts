import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { installAgentClis, runCli, type AgentClis } from '../support/agent-cli.ts'
import {
  FAILURES,
  startFailingRouter,
  type FailingRouter,
  type FailureCase,
} from '../support/failing-router.ts'
import { frame, streamOf, toolDelta } from '../support/provider-frames.ts'
import { startStack, type Stack } from '../support/stack.ts'
import { standinOf, type Standin } from '../support/standin.ts'

/** Codex and Claude Code do a small task with a tool call through the router, offline but for it. */

let clis: AgentClis | undefined
let stack: Stack
let standin: Standin
let failing: FailingRouter

beforeAll(async () => {
  clis = await installAgentClis()
  stack = await startStack()
  standin = standinOf(stack)
  failing = await startFailingRouter()
}, 600_000)
afterAll(async () => {
  failing.close()
  await stack.stop()
})
beforeEach(() => standin.reset())

/** A folder with a note, and a home of its own for the agent's settings. */
function workplace(): { readonly work: string; readonly home: string } {
  const folder = mkdtempSync(join(tmpdir(), 'cmr-agent-'))
  const [work, home] = [join(folder, 'work'), join(folder, 'home')]
  mkdirSync(work)
  mkdirSync(home)
  writeFileSync(join(work, 'note.txt'), 'The word is quince.\n')
  return { work, home }
}

/** Where an agent finds its router. */
interface Target {
  readonly origin: string
  readonly key: string
}

const running = (): Target => ({ origin: stack.local.base_url, key: stack.local.api_key })

function codex(file: string, { origin, key }: Target = running()): Promise<string> {
  const { work, home } = workplace()
  const settings = [
    'model = "mistral-small"',
    'model_provider = "router"',
    'approval_policy = "never"',
    'sandbox_mode = "danger-full-access"',
    '[model_providers.router]',
    'name = "router"',
    `base_url = "${origin}/v1"`,
    'env_key = "ROUTER_KEY"',
    'wire_api = "responses"',
  ]
  writeFileSync(join(home, 'config.toml'), settings.join('\n'))
  const env = { CODEX_HOME: home, HOME: home, ROUTER_KEY: key }
  const ask = ['exec', '--skip-git-repo-check', 'What is the word in note.txt?']
  return runCli(file, ask, { cwd: work, env })
}

function claude(
  file: string,
  { work, home }: ReturnType<typeof workplace>,
  { origin, key }: Target = running(),
): Promise<string> {
  const env = {
    HOME: home,
    ANTHROPIC_BASE_URL: origin,
    ANTHROPIC_AUTH_TOKEN: key,
    CLAUDE_CODE_MAX_RETRIES: String(CLAUDE_RETRIES),
    ANTHROPIC_DEFAULT_HAIKU_MODEL: 'mistral-small',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    IS_SANDBOX: '1',
  }
  const rights = ['--model', 'mistral-small', '--dangerously-skip-permissions']
  return runCli(file, ['-p', 'What is the word in note.txt?', ...rights], { cwd: work, env })
}

/** In place of its ten, for which it takes three minutes. */
const CLAUDE_RETRIES = 1

async function asked(): Promise<number> {
  return (await standin.exchanges()).length
}

test('codex exec reads a file by a tool call, in two requests', async ({ skip }) => {
  if (clis === undefined) {
    skip('codex cannot be installed here')
    return
  }
  const call = toolDelta(0, 'exec_command', JSON.stringify({ cmd: 'cat note.txt' }))
  await standin.script({ frames: streamOf([call], 'tool_calls') })
  expect(await codex(clis.codex)).toContain('The word is quince.')
  expect(await asked()).toBe(2)
}, 180_000)

test('claude -p reads a file by a tool call, in two requests', async ({ skip }) => {
  if (clis === undefined) {
    skip('claude cannot be installed here')
    return
  }
  const place = workplace()
  const call = toolDelta(0, 'Read', JSON.stringify({ file_path: join(place.work, 'note.txt') }))
  await standin.script({ frames: streamOf([call], 'tool_calls') })
  expect(await claude(clis.claude, place)).toContain('The word is quince.')
  expect(await asked()).toBe(2)
  const [exchange] = await standin.exchanges()
  const sent = Buffer.from(exchange?.request.base64 ?? '', 'base64').toString()
  expect(sent).not.toContain('x-anthropic-billing-header')
}, 180_000)

test('a stream that breaks costs codex and claude one paid request each', async ({ skip }) => {
  if (clis === undefined) {
    skip('they cannot be installed here')
    return
  }
  const frames = [frame({ content: 'half' })]
  await standin.script({ times: 9, frames, frame_delay_ms: 200, end: 'reset' })
  await codex(clis.codex)
  expect(await asked()).toBe(1)
  await claude(clis.claude, workplace())
  expect(await asked()).toBe(2)
}, 180_000)

/** Requests for each failure: the table of docs/api-formats.md. */
const CODEX: Readonly<Record<FailureCase, number>> = {
  '401': 6,
  '402': 6,
  '413': 6,
  '429': 6,
  '503': 5,
  'routes down': 5,
  'cut stream': 6,
  'error event': 1,
}

const CLAUDE: Readonly<Record<FailureCase, number>> = {
  '401': 1,
  '402': 1,
  '413': 1,
  '429': 1 + CLAUDE_RETRIES,
  '503': 1 + CLAUDE_RETRIES,
  'routes down': 1 + CLAUDE_RETRIES,
  'cut stream': 2 + CLAUDE_RETRIES,
  'error event': 1,
}

describe.each(FAILURES)('where the router answers "%s"', (failure) => {
  const target = () => ({ origin: failing.origin(failure), key: 'k' })

  test(`codex asks ${CODEX[failure]} times`, async ({ skip }) => {
    if (clis === undefined) {
      skip('codex cannot be installed here')
      return
    }
    await codex(clis.codex, target())
    expect(failing.taken(failure)).toBe(CODEX[failure])
  }, 180_000)

  test(`claude asks ${CLAUDE[failure]} times`, async ({ skip }) => {
    if (clis === undefined) {
      skip('claude cannot be installed here')
      return
    }
    await claude(clis.claude, workplace(), target())
    expect(failing.taken(failure)).toBe(CLAUDE[failure])
  }, 180_000)
})
