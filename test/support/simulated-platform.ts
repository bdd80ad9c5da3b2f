import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import {
  issueSimulatedChain,
  makeSimulatedAuthority,
  type SimulatedAuthority,
  type SimulatedChain,
} from '../../src/enclave/simulated/chain.ts'
import { exportSimulatedChain } from '../../src/enclave/snp/simulated-source.ts'
import { CHIP_FILE_VARIABLE } from '../../src/enclave/open-machine.ts'
import { fromBase64, toBase64 } from '../../src/protocol/bytes.ts'

/** Names the file with the authority of this test run. */
const AUTHORITY_VARIABLE = 'CMR_TEST_AUTHORITY'

const SCHEME = { name: 'RSA-PSS', hash: 'SHA-384' }

const pairSchema = z.strictObject({ pkcs8: z.string(), spki: z.string() })
const authoritySchema = z.strictObject({ ark: pairSchema, ask: pairSchema })

/**
 * Set-up of a whole test run. An authority of a simulated platform takes a second of CPU to make (two RSA-4096 keys), so
 * every test file and every stack that a test starts uses the same one.
 * @returns what removes the files in the end
 */
export async function setup(): Promise<() => void> {
  const directory = mkdtempSync(join(tmpdir(), 'cmr-platform-'))
  const authority = await makeSimulatedAuthority()
  const chip = await exportSimulatedChain(await issueSimulatedChain(authority, Date.now()))
  const write = (variable: string, name: string, content: unknown) => {
    const file = join(directory, name)
    writeFileSync(file, JSON.stringify(content))
    process.env[variable] = file
  }
  write(CHIP_FILE_VARIABLE, 'chip.json', chip)
  write(AUTHORITY_VARIABLE, 'authority.json', {
    ark: await exportPair(authority.ark),
    ask: await exportPair(authority.ask),
  })
  return () => rmSync(directory, { recursive: true })
}

/** The authority of this test run; outside of one, a new one. */
export async function runAuthority(): Promise<SimulatedAuthority> {
  const file = process.env[AUTHORITY_VARIABLE]
  if (file === undefined) return makeSimulatedAuthority()
  const { ark, ask } = authoritySchema.parse(JSON.parse(readFileSync(file, 'utf8')))
  return { ark: await importPair(ark), ask: await importPair(ask) }
}

/** A new chip under that authority. */
export async function runChain(): Promise<SimulatedChain> {
  return issueSimulatedChain(await runAuthority(), Date.now())
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
