import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { installAgentClis, runCli, type AgentClis } from '../support/agent-cli.ts'
import { frame, streamOf, toolDelta } from '../support/provider-frames.ts'
import { startStack, type Stack } from '../support/stack.ts'
import { standinOf, type Standin } from '../support/standin.ts'

/** Codex and Claude Code do a small task with a tool call through the router, offline but for it. */

let clis: AgentClis | undefined
let stack: Stack
let standin: Standin

beforeAll(async () => {
  clis = await installAgentClis()
  stack = await startStack()
  standin = standinOf(stack)
}, 600_000)
afterAll(() => stack.stop())
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

function codex(file: string): Promise<string> {
  const { work, home } = workplace()
  const settings = [
    'model = "mistral-small"',
    'model_provider = "router"',
    'approval_policy = "never"',
    'sandbox_mode = "danger-full-access"',
    '[model_providers.router]',
    'name = "router"',
    `base_url = "${stack.local.base_url}/v1"`,
    'env_key = "ROUTER_KEY"',
    'wire_api = "responses"',
  ]
  writeFileSync(join(home, 'config.toml'), settings.join('\n'))
  const env = { CODEX_HOME: home, HOME: home, ROUTER_KEY: stack.local.api_key }
  const ask = ['exec', '--skip-git-repo-check', 'What is the word in note.txt?']
  return runCli(file, ask, { cwd: work, env })
}

function claude(file: string, { work, home }: ReturnType<typeof workplace>): Promise<string> {
  const env = {
    HOME: home,
    ANTHROPIC_BASE_URL: stack.local.base_url,
    ANTHROPIC_AUTH_TOKEN: stack.local.api_key,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: 'mistral-small',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    IS_SANDBOX: '1',
  }
  const rights = ['--model', 'mistral-small', '--dangerously-skip-permissions']
  return runCli(file, ['-p', 'What is the word in note.txt?', ...rights], { cwd: work, env })
}

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

test('a stream that breaks costs one paid request of codex, not six', async ({ skip }) => {
  if (clis === undefined) {
    skip('codex cannot be installed here')
    return
  }
  const frames = [frame({ content: 'half' })]
  await standin.script({ times: 9, frames, frame_delay_ms: 200, end: 'reset' })
  await codex(clis.codex)
  expect(await asked()).toBe(1)
}, 180_000)
