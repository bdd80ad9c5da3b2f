import { z } from 'zod'
import {
  issueSimulatedChain,
  makeSimulatedAuthority,
  type SimulatedAuthority,
  type SimulatedChain,
} from '../../src/enclave/simulated/chain.ts'
import { fromBase64, toBase64 } from '../../src/protocol/bytes.ts'

/** Holds the authority of this test run. A variable, because suites that run in workerd and browsers have no files. */
export const AUTHORITY_VARIABLE = 'CMR_TEST_AUTHORITY'

const SCHEME = { name: 'RSA-PSS', hash: 'SHA-384' }

const pairSchema = z.strictObject({ pkcs8: z.string(), spki: z.string() })
const authoritySchema = z.strictObject({ ark: pairSchema, ask: pairSchema })

/** The authority of this test run; where no run has one, a new one. */
export async function runAuthority(): Promise<SimulatedAuthority> {
  const kept = typeof process === 'undefined' ? undefined : process.env[AUTHORITY_VARIABLE]
  if (kept === undefined) return makeSimulatedAuthority()
  const { ark, ask } = authoritySchema.parse(JSON.parse(kept))
  return { ark: await importPair(ark), ask: await importPair(ask) }
}

/** A new chip under that authority. */
export async function runChain(): Promise<SimulatedChain> {
  return issueSimulatedChain(await runAuthority(), Date.now())
}

export async function exportAuthority({ ark, ask }: SimulatedAuthority): Promise<string> {
  return JSON.stringify({ ark: await exportPair(ark), ask: await exportPair(ask) })
}

async function exportPair(pair: CryptoKeyPair): Promise<z.output<typeof pairSchema>> {
  const [pkcs8, spki] = await Promise.all([
    crypto.subtle.exportKey('pkcs8', pair.privateKey),
    crypto.subtle.exportKey('spki', pair.publicKey),
  ])
  return { pkcs8: toBase64(new Uint8Array(pkcs8)), spki: toBase64(new Uint8Array(spki)) }
}

async function importPair({ pkcs8, spki }: z.output<typeof pairSchema>): Promise<CryptoKeyPair> {
  const [privateKey, publicKey] = await Promise.all([
    crypto.subtle.importKey('pkcs8', fromBase64(pkcs8), SCHEME, true, ['sign']),
    crypto.subtle.importKey('spki', fromBase64(spki), SCHEME, true, ['verify']),
  ])
  return { privateKey, publicKey }
}
