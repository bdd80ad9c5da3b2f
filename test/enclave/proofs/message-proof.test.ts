import { setTimeout as delay } from 'node:timers/promises'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { beforeAll, describe, expect, it } from 'vitest'
import type { EgressRequest } from '../../../src/enclave/open-egress.ts'
import { proveMessage, type FinishedMessage } from '../../../src/enclave/proofs/message-proof.ts'
import { concatBytes, toHex, utf8, type Bytes } from '../../../src/protocol/bytes.ts'

const REQUEST = 'a1'.repeat(32)
const RESPONSE = 'b2'.repeat(32)
const MODEL = 'zai-org/GLM-5:fp8'

interface Signer {
  readonly address: string
  sign(text: string): Promise<string>
}

let ed25519: Signer
let ethereum: Signer

beforeAll(async () => {
  const pair = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
  if (!('privateKey' in pair)) throw new Error('no key pair')
  ed25519 = {
    address: toHex(new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey))),
    sign: async (text) =>
      toHex(new Uint8Array(await crypto.subtle.sign('Ed25519', pair.privateKey, utf8(text)))),
  }
  const secret = secp256k1.utils.randomSecretKey()
  const publicKey = secp256k1.getPublicKey(secret, false)
  ethereum = {
    address: toHex(keccak_256(publicKey.slice(1)).slice(12)),
    sign: async (text) => {
      const prefix = utf8(`\u0019Ethereum Signed Message:\n${text.length}`)
      const digest = keccak_256(concatBytes(prefix, utf8(text)))
      const signed = secp256k1.sign(digest, secret, { prehash: false, format: 'recovered' })
      return `0x${toHex(signed.slice(1))}${toHex(Uint8Array.of((signed[0] ?? 0) + 27))}`
    },
  }
})

type Reply = { status: number; body: Bytes } | undefined

/** Replies in turn, the last one for ever. */
function provider(...replies: (Reply | Promise<Reply>)[]) {
  const asked: EgressRequest[] = []
  const get = async (_provider: string, ask: EgressRequest) => {
    asked.push(ask)
    return replies[Math.min(asked.length, replies.length) - 1]
  }
  return { asked, tools: { egress: { get }, waitMs: 200, pauseMs: 5 } }
}

const json = (value: unknown): Reply => ({ status: 200, body: utf8(JSON.stringify(value)) })
const notYet: Reply = { status: 404, body: new Uint8Array() }

function message(change: Partial<FinishedMessage> = {}): FinishedMessage {
  return {
    provider: 'nova',
    responseId: 'chatcmpl-1',
    upstreamModel: MODEL,
    requestDigest: REQUEST,
    responseDigest: RESPONSE,
    key: { algorithm: 'ed25519', address: ed25519.address },
    ...change,
  }
}

const DIGESTS = `${REQUEST}:${RESPONSE}`

async function answer(text = DIGESTS, by = ed25519, algorithm = 'ed25519', signed = text) {
  const prefix = algorithm === 'ecdsa' ? '0x' : ''
  return {
    text,
    signature: await by.sign(signed),
    signing_address: prefix + by.address.toUpperCase(),
    signing_algo: algorithm,
  }
}

describe('the signature of a finished completion', () => {
  it('is verified against our own digests and the attested key', async () => {
    const { tools, asked } = provider(json(await answer()))
    expect(await proveMessage(message(), tools)).toEqual({
      status: 'verified',
      form: 'digests',
      text: DIGESTS,
      signature: await ed25519.sign(DIGESTS),
      signing_algo: 'ed25519',
      signing_address: ed25519.address,
    })
    expect(asked[0]?.path).toBe(
      '/signature/chatcmpl-1?signing_algo=ed25519&model=zai-org%2FGLM-5%3Afp8',
    )
  })

  it('may name the model too, even one with a colon', async () => {
    const { tools } = provider(json(await answer(`${MODEL}:${DIGESTS}`)))
    expect(await proveMessage(message(), tools)).toMatchObject({
      status: 'verified',
      form: 'model_and_digests',
    })
  })

  it('may be by an attested node behind the gateway, for its own model only', async () => {
    const gateway = { algorithm: 'ecdsa', address: ethereum.address } as const
    const node = { algorithm: 'ed25519', address: ed25519.address } as const
    const { tools } = provider(json(await answer(`${MODEL}:${DIGESTS}`)))
    const behind = (model: string) => message({ key: { ...gateway, behind: [{ ...node, model }] } })
    expect(await proveMessage(behind(MODEL), tools)).toEqual({
      status: 'verified',
      form: 'model_and_digests',
      text: `${MODEL}:${DIGESTS}`,
      signature: await ed25519.sign(`${MODEL}:${DIGESTS}`),
      signing_algo: 'ed25519',
      signing_address: ed25519.address,
    })
    expect(await proveMessage(behind('another model'), tools)).toEqual({
      status: 'other_key',
      signing_algo: 'ecdsa',
      signing_address: ethereum.address,
    })
    expect(await proveMessage(message({ key: gateway }), tools)).toMatchObject({
      status: 'other_key',
    })
  })

  it('may be one of Ethereum', async () => {
    const { tools } = provider(json(await answer(DIGESTS, ethereum, 'ecdsa')))
    const key = { algorithm: 'ecdsa', address: ethereum.address } as const
    expect(await proveMessage(message({ key }), tools)).toMatchObject({ status: 'verified' })
  })

  it('is asked for again while the provider is still writing it down', async () => {
    const { tools, asked } = provider(notYet, undefined, json(await answer()))
    expect(await proveMessage(message(), tools)).toMatchObject({ status: 'verified' })
    expect(asked).toHaveLength(3)
  })
})

describe('without a proof the receipt says why', () => {
  const other = `${'c3'.repeat(32)}:${RESPONSE}`
  it.each<[string, () => Promise<unknown>]>([
    ['mismatch', () => answer(other)],
    ['mismatch', () => answer(`other-model:${DIGESTS}`)],
    ['invalid', () => answer(DIGESTS, ed25519, 'ed25519', other)],
    ['other_key', () => answer(DIGESTS, ethereum, 'ecdsa')],
    ['unsupported', async () => ({ error_code: 'STREAM_DISCONNECTED', message: 'their words' })],
    ['malformed', async () => ({ text: 1 })],
    ['malformed', async () => []],
  ])('%s', async (status, reply) => {
    const { tools } = provider(json(await reply()))
    expect(await proveMessage(message(), tools)).toEqual({
      status,
      signing_algo: 'ed25519',
      signing_address: ed25519.address,
    })
  })

  it('invalid, for a damaged Ethereum signature', async () => {
    const key = { algorithm: 'ecdsa', address: ethereum.address } as const
    const good = await answer(DIGESTS, ethereum, 'ecdsa')
    for (const signature of [good.signature.replace(/..$/, '20'), '0x00', 'zz']) {
      const { tools } = provider(json({ ...good, signature }))
      expect(await proveMessage(message({ key }), tools)).toMatchObject({ status: 'invalid' })
    }
  })

  it('timeout, after the bound and not later', async () => {
    const { asked, tools } = provider(notYet)
    const proof = await proveMessage(message(), tools)
    const atTheBound = asked.length
    expect(proof).toMatchObject({ status: 'timeout' })
    expect(asked.at(-1)?.signal.aborted).toBe(true)
    await delay(20 * tools.pauseMs)
    expect(asked).toHaveLength(atTheBound)
  })

  it('timeout, when the connection has to be verified again and that takes too long', async () => {
    const { tools } = provider(new Promise<Reply>(() => {}))
    expect(await proveMessage(message(), tools)).toMatchObject({ status: 'timeout' })
  })

  it('no_response_id, when the provider gave none', async () => {
    const { tools, asked } = provider(notYet)
    const without = message({ responseId: undefined })
    expect(await proveMessage(without, tools)).toMatchObject({ status: 'no_response_id' })
    expect(asked).toEqual([])
  })
})
