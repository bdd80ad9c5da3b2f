import { keccak_256 } from '@noble/hashes/sha3.js'
import { describe, expect, it } from 'vitest'
import { concatBytes, fromHex, toHex, utf8, type Bytes } from '../../../../src/protocol/bytes.ts'
import { sha256 } from '../../../../src/protocol/digest.ts'
import {
  requireConfigId,
  type ConfigIdInputs,
} from '../../../../src/verify/providers/dstack/config-id.ts'

const KEY_PROVIDER_ID = '1b7a'.repeat(16)
const FACTS = {
  composeHash: 'c0'.repeat(32),
  appId: 'aa'.repeat(20),
  instanceId: 'bb'.repeat(20),
  osImageHash: undefined,
  keyProvider: JSON.stringify({ name: 'kms', id: KEY_PROVIDER_ID }),
}
const DOCUMENT = JSON.stringify({
  app_id: FACTS.appId,
  compose_hash: FACTS.composeHash,
  instance_id: FACTS.instanceId,
  key_provider: 'kms',
  version: 3,
})

const idOf = (form: number, digest: Uint8Array): Bytes =>
  concatBytes(Uint8Array.of(form), digest, new Uint8Array(15))

const first = idOf(1, fromHex(FACTS.composeHash))
const second = idOf(
  2,
  keccak_256(fromHex(`${FACTS.composeHash}${FACTS.appId}02${KEY_PROVIDER_ID}`)),
)
const third = async (document: string) =>
  idOf(3, await sha256(utf8(`dstack-mr-config-v3:\0${document}`)))

interface Change {
  readonly facts?: Partial<ConfigIdInputs['facts']>
  readonly mrConfig?: string
  readonly policy?: Partial<ConfigIdInputs['policy']>
}

function demand(configId: Bytes, { facts, mrConfig, policy }: Change = {}): Promise<void> {
  return requireConfigId(configId, {
    facts: { ...FACTS, ...facts },
    mrConfig,
    policy: { mr_config_id: 'optional', ...policy },
  })
}

const REFUSED = {
  code: 'compose_hash',
  message: 'the workload is not one the operator allows, or is not the one measured (mr_config_id)',
}

describe('MRCONFIGID of a dstack guest', () => {
  it('may be all zero, which is what the tools write, unless one is required', async () => {
    await expect(demand(new Uint8Array(48))).resolves.toBeUndefined()
    const required = { policy: { mr_config_id: 'required' } } as const
    await expect(demand(new Uint8Array(48), required)).rejects.toMatchObject(REFUSED)
    await expect(demand(first, required)).resolves.toBeUndefined()
  })

  it('is understood in its three forms', async () => {
    await expect(demand(first)).resolves.toBeUndefined()
    await expect(demand(second)).resolves.toBeUndefined()
    await expect(demand(await third(DOCUMENT), { mrConfig: DOCUMENT })).resolves.toBeUndefined()
  })

  it.each<[string, () => Bytes | Promise<Bytes>, Change]>([
    ['a form that nobody knows', () => idOf(4, fromHex(FACTS.composeHash)), {}],
    ['the first form of another compose hash', () => idOf(1, fromHex('c1'.repeat(32))), {}],
    [
      'the first form with something behind it',
      () => concatBytes(first.slice(0, 47), Uint8Array.of(1)),
      {},
    ],
    ['the second form of another app', () => second, { facts: { appId: 'ab'.repeat(20) } }],
    ['the second form without an app', () => second, { facts: { appId: undefined } }],
    ['the second form without a key provider', () => second, { facts: { keyProvider: undefined } }],
    [
      'the second form of another key provider',
      () => second,
      { facts: { keyProvider: JSON.stringify({ name: 'tpm', id: KEY_PROVIDER_ID }) } },
    ],
    ['the second form of nonsense', () => second, { facts: { keyProvider: '{' } }],
    ['the third form without its document', () => third(DOCUMENT), {}],
    ['the third form of another document', () => third(DOCUMENT), { mrConfig: `${DOCUMENT} ` }],
    [
      'the third form of another compose hash',
      () => third(DOCUMENT),
      { mrConfig: DOCUMENT, facts: { composeHash: 'c1'.repeat(32) } },
    ],
    [
      'the third form of another app',
      () => third(DOCUMENT),
      { mrConfig: DOCUMENT, facts: { appId: 'ab'.repeat(20) } },
    ],
    [
      'the third form of another instance',
      () => third(DOCUMENT),
      { mrConfig: DOCUMENT, facts: { instanceId: 'ab'.repeat(20) } },
    ],
    [
      'the third form of a document with more in it',
      () => third(DOCUMENT.replace('{', '{"more":1,')),
      { mrConfig: DOCUMENT.replace('{', '{"more":1,') },
    ],
  ])('is refused: %s', async (_what, configId, change) => {
    await expect(demand(await configId(), change)).rejects.toMatchObject(REFUSED)
  })

  it('is exactly what is pinned, where something is', async () => {
    const pinned = { policy: { allowed_mr_config_id: ['77'.repeat(48)] } }
    await expect(demand(fromHex('77'.repeat(48)), pinned)).resolves.toBeUndefined()
    for (const other of [first, new Uint8Array(48)]) {
      await expect(demand(other, pinned)).rejects.toMatchObject({
        code: 'launch_binding',
        message: expect.stringContaining('(mr_config_id)'),
      })
    }
    expect(toHex(first).length).toBe(96)
  })
})
