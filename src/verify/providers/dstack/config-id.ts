import { keccak_256 } from '@noble/hashes/sha3.js'
import * as z from 'zod'
import { concatBytes, copyBytes, equalBytes, fromHex, type Bytes } from '../../../protocol/bytes.ts'
import { MalformedEvidence } from '../../../protocol/malformed-evidence.ts'
import type { PolicyOf } from '../../../protocol/provider-policy.ts'
import { parseStrictJson } from '../../../protocol/strict-json.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import type { BootFacts } from './event-log.ts'
import { digestMrConfig, readMrConfig } from './mr-config.ts'
import { requireLaunchBinding } from '../launch-binding.ts'

export interface ConfigIdInputs {
  /** The facts proven by RTMR3; MRCONFIGID must match them. */
  readonly facts: BootFacts
  /** The document of the third form. */
  readonly mrConfig: string | undefined
  readonly policy: Pick<PolicyOf<'dstack' | 'aci'>, 'mr_config_id' | 'allowed_mr_config_id'>
}

/**
 * Checks MRCONFIGID of a dstack guest (dstack, `mr_config`): all zero, which is the default of its tools; or, by the
 * first byte, the compose hash (01), a digest over compose hash, app id and key provider (02), or the digest of a
 * document that names them (03).
 * @throws EvidenceRefused `compose_hash` when it has another form or does not match the facts
 */
export async function requireConfigId(configId: Bytes, inputs: ConfigIdInputs): Promise<void> {
  const { allowed_mr_config_id: pinned, mr_config_id: required } = inputs.policy
  if (pinned !== undefined) return requireLaunchBinding('mr_config_id', configId, pinned)
  const unset = configId.every((byte) => byte === 0)
  if (unset && required === 'optional') return undefined
  const [form = 0] = configId
  const digest = await FORMS[form]?.(inputs)
  const expected = digest && concatBytes(Uint8Array.of(form), digest, new Uint8Array(15))
  if (expected === undefined || !equalBytes(configId, expected)) {
    throw new EvidenceRefused('compose_hash', ['mr_config_id'])
  }
}

/** The 32 bytes of a form for these facts; undefined where a fact is missing. */
type ConfigDigest = (inputs: ConfigIdInputs) => Promise<Bytes | undefined>

const FORMS: Readonly<Record<number, ConfigDigest>> = {
  1: async ({ facts }) => fromHex(facts.composeHash),
  2: async ({ facts }) => {
    const provider = readKeyProvider(facts.keyProvider)
    if (provider === undefined || facts.appId === undefined) return undefined
    const { kind, id } = provider
    const named = concatBytes(fromHex(facts.composeHash), fromHex(facts.appId))
    return copyBytes(keccak_256(concatBytes(named, Uint8Array.of(kind), id)))
  },
  3: async ({ facts, mrConfig }) => {
    if (mrConfig === undefined || !namesFacts(mrConfig, facts)) return undefined
    return digestMrConfig(mrConfig)
  },
}

const hexText = z.string().regex(/^([0-9a-f]{2})*$/)

const KINDS = { none: 0, 'local-sgx': 1, kms: 2, tpm: 3 } as const
const keyProviderSchema = z.looseObject({
  name: z.enum(['none', 'local-sgx', 'kms', 'tpm']),
  id: hexText,
})

/**
 * Reads the key provider. Its event comes after the end of boot, so it is only a claim; it is proven here because the
 * digest covers it.
 */
function readKeyProvider(text: string | undefined): { kind: number; id: Bytes } | undefined {
  const provider = keyProviderSchema.safeParse(text === undefined ? undefined : read(text))
  if (!provider.success) return undefined
  const { name, id } = provider.data
  return { kind: KINDS[name], id: fromHex(id) }
}

function namesFacts(text: string, facts: BootFacts): boolean {
  const document = readMrConfig(text)
  if (document === undefined) return false
  const { compose_hash: compose, app_id: app, instance_id: instance } = document
  return (
    compose === facts.composeHash &&
    (app ?? facts.appId) === facts.appId &&
    (instance ?? facts.instanceId) === facts.instanceId
  )
}

function read(text: string): unknown {
  try {
    return parseStrictJson(text, 'dstack configuration')
  } catch (error) {
    if (error instanceof MalformedEvidence) return undefined
    throw error
  }
}
