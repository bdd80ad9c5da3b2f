import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { receiptClaimsSchema } from '../../src/protocol/receipt.ts'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { readServingFile } from '../../src/host/serve/serving-file.ts'
import { completionIn } from '../support/answers.ts'
import { ADMIN_TOKEN, chatBody, startServe, type Serving } from '../support/serve.ts'
import { until } from '../support/stack.ts'
import { TRUST_BUNDLE_URL } from '../support/trust-bundle-url.ts'

/** Two workers, whose calls to an attested provider two threads of the daemon carry. */

const CONFIG = {
  service: {
    name: 'r',
    trust_bundle_url: TRUST_BUNDLE_URL,
    allow_simulated: true,
    workers: 2,
  },
  providers: {
    nova: {
      base_url: 'https://standin.localhost/nova/v1',
      attestation: {
        adapter: 'envelope',
        root_key: { standin: 'release root' },
        environments: ['local'],
      },
    },
  },
  routes: [
    {
      model_key: 'm',
      provider: 'nova',
      upstream_model: 'zai-org/GLM-5',
      type: 'chat',
      pricing: { currency: 'eur', input_per_mtok: 1, output_per_mtok: 1 },
    },
  ],
}

const receiptSchema = z.object({ receipt: z.string() })

let router: Serving

beforeAll(async () => {
  router = await startServe({ config: CONFIG })
  await untilVerified()
})
afterAll(() => router?.remove())

async function untilVerified(): Promise<void> {
  const admin = new AdminApi(router.at.http_url, ADMIN_TOKEN)
  await until(async () =>
    JSON.stringify(await admin.call('GET', '/admin/providers').catch(() => '')).includes(
      '"verified"',
    ),
  )
}

/** On a connection of its own, so that the kernel chooses its worker. */
async function ask(stream: boolean): Promise<{ status: number; text: string }> {
  const headers = { connection: 'close' }
  const answer = await router.fetch('/v1/chat/completions', { ...chatBody('m', stream), headers })
  return { status: answer.status, text: await answer.text() }
}

const asks = (stream: boolean) => Promise.all(Array.from({ length: 12 }, () => ask(stream)))

test('both carry whole answers and streams, and sign receipts of the attested hop', async () => {
  const [whole, streams] = await Promise.all([asks(false), asks(true)])
  expect(new Set([...whole, ...streams].map(({ status }) => status))).toEqual(new Set([200]))
  expect(streams.filter(({ text }) => !text.includes('[DONE]'))).toEqual([])
  const receipts = await Promise.all(
    whole.map(async ({ text }) => {
      const { receipt_id: id } = completionIn(text).service
      const answer = await router.fetch(`/v1/receipts/${id}`)
      const { receipt } = receiptSchema.parse(await answer.json())
      return receiptClaimsSchema.parse(decodeJwt(receipt))
    }),
  )
  const hops = receipts.map(({ inference_attestation: hop }) => JSON.stringify(hop))
  expect(new Set(hops).size).toBe(1)
  expect(receipts[0]?.inference_attestation).toMatchObject({ tee: 'sev-snp', verified: true })
})

test('after the death of the daemon both carry again, on the ports that the workers know', async () => {
  const pid = router.at.parts['enclave'] ?? 0
  process.kill(pid, 'SIGKILL')
  await until(() => readServingFile(router.stateDir).parts['enclave'] !== pid)
  await untilVerified()
  await until(async () => (await asks(true)).every(({ status }) => status === 200))
  const log = readFileSync(join(router.stateDir, 'log', 'enclave.log'), 'utf8')
  expect(log).not.toContain('unexpected_error')
})
