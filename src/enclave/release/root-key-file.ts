import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PublicSigningJwk } from './signing-key.ts'

/**
 * Writes the release root's public JWK for relying parties on this machine.
 * @returns the path
 */
export async function storeRootKey(stateDir: string, jwk: PublicSigningJwk): Promise<string> {
  const path = join(stateDir, 'release-root.jwk.json')
  const unfinished = `${path}.new`
  await mkdir(stateDir, { recursive: true })
  await writeFile(unfinished, `${JSON.stringify(jwk, null, 2)}\n`)
  await rename(unfinished, path)
  return path
}
