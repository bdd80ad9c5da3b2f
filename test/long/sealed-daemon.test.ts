import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectGuest } from '../../src/cli/unseal/guest-connection.ts'
import { readServingFile, SERVING_FILE } from '../../src/host/serve/serving-file.ts'
import { makeSealedWorld, type SealedWorld } from '../support/sealed.ts'
import { runServe, type ServeRun } from '../support/serve.ts'
import { until } from '../support/stack.ts'

let world: SealedWorld
let router: ServeRun

beforeAll(async () => {
  world = await makeSealedWorld('http://127.0.0.1:9/v1')
  router = runServe({ config: world.config, args: ['--sealed'] })
  await until(() => existsSync(join(router.stateDir, SERVING_FILE)))
}, 120_000)
afterAll(async () => {
  await router.remove()
  world.remove()
})

async function attestationStatus(): Promise<number> {
  const { https_port: port } = readServingFile(router.stateDir)
  const connection = await connectGuest(`https://127.0.0.1:${port}`)
  const { status } = await connection.get('/attestation').finally(() => connection.close())
  return status
}

test('the daemon of a sealed router that stands still is replaced', async () => {
  const { enclave = Number.NaN } = readServingFile(router.stateDir).parts
  expect(await attestationStatus()).toBe(200)
  process.kill(enclave, 'SIGSTOP')
  await until(() => router.output().includes('enclave  is frozen: killed'))
  await until(() => readServingFile(router.stateDir).parts['enclave'] !== enclave)
  expect(await attestationStatus()).toBe(200)
}, 240_000)
