import { ed25519 } from '@noble/curves/ed25519.js'
import { describe, expect, it } from 'vitest'
import { toHex, utf8 } from '../../../src/protocol/bytes.ts'
import { checkMessage } from '../../../src/verify/providers/recorded-message.ts'
import type { JudgedEvidence, MessageKey } from '../../../src/verify/providers/judged-evidence.ts'
import { EXCHANGE } from '../../support/rejudge.ts'

const GATEWAY = new Uint8Array(32).fill(1)
const NODE = new Uint8Array(32).fill(2)
const addressOf = (secret: Uint8Array) => toHex(ed25519.getPublicKey(secret))
const DIGESTS = `${EXCHANGE.requestDigest}:${EXCHANGE.responseDigest}`

const key = (model: string): MessageKey => ({
  algorithm: 'ed25519',
  address: addressOf(GATEWAY),
  behind: [{ model, algorithm: 'ed25519', address: addressOf(NODE) }],
})

/** A proof as a receipt states it, judged under evidence that vouches for this key. */
async function judgeProof(text: string, by: Uint8Array, messageKey: MessageKey, stated = by) {
  const judged: JudgedEvidence = {
    verification_mode: 'dstack-tdx',
    checks: [],
    attestation_strength: 'hardware',
    binding: { tls_spki_sha256: '00'.repeat(32) },
    evidence_summary: {},
    claims: { tee: 'tdx' },
    endsAt: Infinity,
    messageKey,
  }
  const message_attestation = {
    status: 'verified',
    text,
    signature: toHex(ed25519.sign(utf8(text), by)),
    signing_address: addressOf(stated),
  }
  const { verification_mode, attestation_strength } = judged
  const block = { verified: true, verification_mode, attestation_strength, message_attestation }
  const [check] = await checkMessage(block, judged, EXCHANGE)
  return check
}

describe('the signature of an answer in a receipt', () => {
  it.each([
    ['the gateway itself', DIGESTS, GATEWAY],
    ['a node behind it, which names its model', `glm:${DIGESTS}`, NODE],
    ['a node behind it, which names none', DIGESTS, NODE],
  ])('is verified again by the key of %s', async (_who, text, by) => {
    expect(await judgeProof(text, by, key('glm'))).toMatchObject({
      name: 'message_signature',
      ok: true,
      detail: addressOf(by),
    })
  })

  it.each<[string, string, Uint8Array, MessageKey, Uint8Array?]>([
    ["a node of another model than the text's", `glm:${DIGESTS}`, NODE, key('other')],
    ['a node of a model whose name begins so', `glm:5:${DIGESTS}`, NODE, key('glm')],
    [
      'a node that the policy does not name',
      DIGESTS,
      NODE,
      { algorithm: 'ed25519', address: addressOf(GATEWAY) },
    ],
    ['another key than the proof states', DIGESTS, NODE, key('glm'), GATEWAY],
    ['nobody', DIGESTS, new Uint8Array(32).fill(3), key('glm')],
  ])('is refused from %s', async (_who, text, by, messageKey, stated) => {
    expect(await judgeProof(text, by, messageKey, stated)).toMatchObject({
      name: 'message_signature',
      ok: false,
      detail: 'it is not by the key that the evidence vouches for',
    })
  })
})
