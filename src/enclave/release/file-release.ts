import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { copyBytes, fromUtf8 } from '../../protocol/bytes.ts'
import { parseCompactJws } from '../../protocol/compact-jws.ts'
import type { ServiceConfig } from '../../protocol/config.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { publishedTrustBundleSchema } from '../../protocol/trust-bundle.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'
import type { Release } from './release.ts'
import { describePublicKey } from './signing-key.ts'

type ReleaseFiles = NonNullable<ServiceConfig['release']>

/** Paths in a configuration are relative to the configuration file. */
export function resolveReleaseFiles(files: ReleaseFiles, configPath: string): ReleaseFiles {
  const base = dirname(resolve(configPath))
  return {
    root_key: typeof files.root_key === 'string' ? resolve(base, files.root_key) : files.root_key,
    bundle: resolve(base, files.bundle),
    manifest: resolve(base, files.manifest),
  }
}

/**
 * Reads the files of a release: the root's public JWK, the bundle (bare or as published) and the manifest. Whether
 * they match each other and this machine is checked with the envelope.
 * @throws Error when a file cannot be read or does not have its form; the message names it
 */
export async function readFileRelease(files: ReleaseFiles): Promise<Release> {
  const rootPublicJwk = await readRootKey(files.root_key)
  const bundleText = await readText(files.bundle)
  const { bundleJws, logProofs } = await named(files.bundle, async () => readBundle(bundleText))
  const manifestJws = (await readText(files.manifest)).trim()
  await named(files.manifest, async () => parseCompactJws(manifestJws, 'workload manifest'))
  const identityTag = await sha256Hex(manifestJws)
  return { rootPublicJwk, bundleJws, manifestJws, identityTag, logProofs }
}

async function readRootKey(given: ReleaseFiles['root_key']): Promise<Release['rootPublicJwk']> {
  if (typeof given !== 'string') return describePublicKey(given)
  const root = await readText(given)
  return named(given, async () => describePublicKey(parseStrictJson(root, 'release root key')))
}

function readBundle(text: string): Pick<Release, 'bundleJws' | 'logProofs'> {
  const trimmed = text.trim()
  const published = trimmed.startsWith('{')
    ? publishedTrustBundleSchema.parse(parseStrictJson(trimmed, 'trust bundle'))
    : { trust_bundle_jws: trimmed }
  const { trust_bundle_jws: bundleJws, log_proofs: logProofs } = published
  parseCompactJws(bundleJws, 'trust bundle')
  return { bundleJws, logProofs }
}

async function readText(path: string): Promise<string> {
  return named(path, async () => fromUtf8(copyBytes(await readFile(path))))
}

async function named<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    const reason = messageOfThrown(cause)
    throw new Error(`the release file ${path} cannot be used: ${reason}`, { cause })
  }
}
