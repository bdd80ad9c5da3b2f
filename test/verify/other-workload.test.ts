import { beforeAll, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'
import { receiptHeadline } from '../../src/verify/headline.ts'
import { toHex } from '../../src/protocol/bytes.ts'
import { clientOf, startFakeRouter } from '../support/fake-router.ts'
import { MEASUREMENT } from '../support/synthetic-snp.ts'
import { judgeReceipt, receiptOf, hopOf } from '../support/synthetic-receipt.ts'
import {
  envelopeOf,
  makeWorld,
  manifest,
  manifestHeader,
  signBundle,
  signJws,
  type World,
} from '../support/synthetic-world.ts'

let world: World
beforeAll(async () => {
  world = await makeWorld()
}, 60_000)

/** A guest of the same operator that is no router, such as its log shipper: the root allows it, as what it is. */
async function logShipper() {
  const jws = await signJws(
    manifestHeader(world.manifestKey),
    manifest({ workload: 'log-shipper' }),
    world.manifestKey,
  )
  const tag = await sha256Hex(jws)
  const bundle = {
    allowed_measurements: [
      { measurement: toHex(MEASUREMENT), workload: 'log-shipper', workload_identity_tag: tag },
    ],
    allowed_identity_tags: [tag],
  }
  const claimed = {
    workload: 'log-shipper',
    workload_identity_tag: tag,
    workload_identity_manifest_jws: jws,
  }
  return { bundle, claimed }
}

test('a prompt is not sent to a guest that the root allows as something else than a router', async () => {
  const { bundle, claimed } = await logShipper()
  const host = await startFakeRouter(world)
  const signed = await signBundle(world, bundle)
  host.misbehave({
    bundleJws: () => signed,
    envelope: (honest) => ({ claimed: { ...honest.claimed, ...claimed } }),
  })
  const { options, deps } = clientOf(world, host)
  const client = createClient(options, deps)
  const body = JSON.stringify({ messages: [{ role: 'user', content: 'PROMPT' }] })
  const sent = client.fetch(`${host.baseURL}/v1/chat/completions`, { method: 'POST', body })
  const outcome = await sent.then(
    () => 'sent',
    (error: unknown) => String(error),
  )
  await client.close()
  host.close()
  expect({ outcome, prompts: host.received.length }).toMatchObject({ prompts: 0 })
})

test('its receipts are not those of a verified router enclave', async () => {
  const { bundle, claimed } = await logShipper()
  const evidence_raw = JSON.parse(JSON.stringify(await envelopeOf(world, { claimed })))
  const router = {
    ...(await hopOf(world)),
    workload_identity_tag: claimed.workload_identity_tag,
    workload_identity_manifest_jws: claimed.workload_identity_manifest_jws,
    trust_bundle_jws: await signBundle(world, bundle),
    evidence_raw,
  }
  const result = await judgeReceipt(world, await receiptOf(world, { router }))
  expect({ ok: result.ok, says: receiptHeadline(result) }).toMatchObject({ ok: false })
})
