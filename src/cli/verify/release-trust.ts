import { es256JwkSchema, type Es256Jwk } from '../../protocol/jwk.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { fetchTrustBundle } from '../../verify/fetch-trust-bundle.ts'
import { newestOf, type KnownBundle } from '../../verify/newest-bundle.ts'
import type { RouterTrust } from '../../verify/receipt-router.ts'
import type { TrustBundleOptions } from '../../verify/trust-bundle.ts'
import { readAcceptedBundle } from '../../client/node/bundle-state.ts'
import { acceptedEnvironments } from './environments.ts'
import { readBundle, readJson } from './read-input.ts'
import type { Answer, RouterClient } from './router-client.ts'

export interface ReleaseOptions {
  readonly rootKey: string
  readonly bundle?: string | undefined
  readonly environment?: string | undefined
  readonly allowSimulated?: boolean | undefined
  readonly acceptBeforeRevocation?: boolean | undefined
  readonly state: string
}

/**
 * A release root's public JWK from a file.
 * @throws InputError when the file cannot be read
 * @throws MalformedEvidence when it is not a P-256 JWK
 */
export async function readRoot(path: string): Promise<Es256Jwk> {
  return asRoot(await readJson(path))
}

/**
 * A release root from parsed JSON.
 * @throws MalformedEvidence when it is not a P-256 JWK
 */
export function asRoot(json: unknown): Es256Jwk {
  return readDocument(es256JwkSchema, json, 'release root key')
}

/**
 * The release root with all available trust bundles: the given one, the stored one, and the one that the router
 * publishes. A router that publishes none is no error; a published bundle is trusted only by its signature.
 */
export async function obtainTrust(
  options: ReleaseOptions,
  client: RouterClient | undefined,
): Promise<RouterTrust> {
  const rootJwk = await readRoot(options.rootKey)
  const given = options.bundle === undefined ? undefined : await readBundle(options.bundle)
  const published = client && (await publishedBundle(client)).jws
  // Read after the router's answer: the router decides how long that takes, and a newer bundle may have been stored
  // meanwhile.
  const lastAccepted = await readAcceptedBundle(options.state, rootJwk)
  return {
    rootJwk,
    environments: acceptedEnvironments(options.environment, options.allowSimulated),
    bundles: [given, published, lastAccepted?.jws].filter((jws) => jws !== undefined),
    lastAccepted,
    acceptBeforeRevocation: options.acceptBeforeRevocation === true,
  }
}

/**
 * The newest known bundle under a release root, of those given and the stored one; needed for its revocations, so it
 * may be expired. Ignores bundles of other roots.
 * @throws ClientError when the state file is damaged
 */
export async function newestUnder(
  rootJwk: Es256Jwk,
  state: string,
  { given = [], ...options }: NewestOptions,
): Promise<KnownBundle | undefined> {
  const remembered = (await readAcceptedBundle(state, rootJwk))?.jws
  const texts = [...given, remembered].filter((jws) => jws !== undefined)
  return newestOf(texts, rootJwk, options)
}

interface NewestOptions extends Pick<TrustBundleOptions, 'now' | 'environments'> {
  /** Compact JWS, of any root. */
  readonly given?: readonly string[] | undefined
}

/**
 * The bundle that a router publishes at its own address.
 * @throws InputError when it cannot be fetched
 * @throws MalformedEvidence when it cannot be parsed
 */
export function publishedBundle(client: RouterClient) {
  return fetchTrustBundle(
    `${client.base.origin}/.well-known/trust.json`,
    client.base.origin,
    async (input) => asResponse(await client.get(pathOf(input))),
  )
}

function pathOf(input: string | URL | Request): string {
  return new URL(input instanceof Request ? input.url : input).pathname
}

function asResponse({ status, body }: Answer): Response {
  return new Response(status === 204 || status === 304 ? null : new Uint8Array(body), { status })
}
