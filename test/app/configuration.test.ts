import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startStack, temporaryDirectory, until, type Stack } from '../support/stack.ts'

function config(modelKey: string, baseUrl: string): object {
  return {
    service: { name: 'test', mode: 'local' },
    providers: { nova: { base_url: baseUrl, attestation: { adapter: 'none' } } },
    routes: [{ model_key: modelKey, provider: 'nova', upstream_model: 'x', type: 'chat' }],
  }
}

async function servesModel(stack: Stack, id: string): Promise<boolean> {
  const answer = await stack.fetch('/v1/models')
  const { data }: { data: { id: string }[] } = await answer.json()
  return data.some((model) => model.id === id)
}

describe('the stack with a configuration of its own', () => {
  test('starts no stand-in provider where none is named', async () => {
    const stack = await startStack({ config: config('m', 'http://127.0.0.1:9/v1') })
    expect(stack.local.pids).not.toHaveProperty('standin')
    expect(await servesModel(stack, 'nova/m')).toBe(true)
    await stack.stop()
  })

  test('reads it again on SIGUSR2 and keeps the last good one', async () => {
    const stateDir = temporaryDirectory()
    const file = join(stateDir, 'given-config.json')
    const standin = 'http://standin.localhost/nova/v1'
    const stack = await startStack({ stateDir, config: config('before', standin) })
    expect(await servesModel(stack, 'before')).toBe(true)

    writeFileSync(file, JSON.stringify(config('after', standin)))
    stack.signal('SIGUSR2')
    await until(() => servesModel(stack, 'after'))
    expect(await servesModel(stack, 'after')).toBe(true)

    writeFileSync(file, '{}')
    stack.signal('SIGUSR2')
    await until(() => stack.output().includes('error: '))
    expect(stack.output()).toContain(`error: ${file}: service: `)
    expect(await servesModel(stack, 'after')).toBe(true)
    await stack.stop()
    rmSync(stateDir, { recursive: true })
  })
})
