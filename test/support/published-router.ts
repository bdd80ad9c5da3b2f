import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { makeHpkeKey } from '../../src/enclave/hpke/hpke-key.ts'
import { makeTlsIdentity } from '../../src/enclave/keys/tls-identity.ts'
import { issueSimulatedChain } from '../../src/enclave/simulated/chain.ts'
import { toBase64, type Bytes } from '../../src/protocol/bytes.ts'
import type { LogProofs, TrustBundleInput } from '../../src/protocol/trust-bundle.ts'
import { listen } from './listen.ts'
import { RECEIPT_ID, receiptOf } from './synthetic-receipt.ts'
import { DAY_MS, NOW, revocationList, syntheticAuthority } from './synthetic-snp.ts'
import { envelopeOf, makeWorld, signBundle, type World } from './synthetic-world.ts'

/** A router on a simulated platform as far as a relying party sees it, judged at the real current time, with files about it. */
export interface PublishedRouter {
  readonly world: World
  readonly plain: string
  readonly secure: string
  /** Answers every nonce with an old envelope whose time was rewritten. */
  readonly captured: string
  /** Its envelopes bring the platform's revocation list. */
  readonly listed: string
  /** Serves an HPKE key, which its envelopes name. */
  readonly sealing: string
  /** Serves an HPKE key, and its envelopes name another. */
  readonly swapped: string
  /** Serves an invalid HPKE key. */
  readonly garbled: string
  /** Path of a file: `root.json`, `jwks.json`, `bundle.jws`, `receipt.json`, `request`, `response`, `revoked.crl`. */
  file(name: string): string
  write(name: string, content: string | Bytes): Promise<string>
  /** Puts another bundle in place of the router's. */
  publish(bundle: string, logProofs?: LogProofs): void
  close(): Promise<void>
}

/** RFC 3339 of a moment so many days from the real now. */
export const fromNow = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString()

/** A bundle with dates around the real now. */
export function currentBundle({ manifestKey }: World): Partial<TrustBundleInput> {
  const dates = { not_before: fromNow(-1), not_after: fromNow(9) }
  return {
    version: 9,
    environment: 'local',
    issued_at: fromNow(-1),
    not_before: fromNow(-1),
    expires_at: fromNow(9),
    delegated_keys: { workload_manifest: { jwk: manifestKey.jwk, ...dates } },
  }
}

export async function startPublishedRouter(): Promise<PublishedRouter> {
  const folder = await mkdtemp(join(tmpdir(), 'cmr-verify-'))
  const file = (name: string) => join(folder, name)
  const tls = await makeTlsIdentity([], new Date())
  const chain = await issueSimulatedChain(await syntheticAuthority(), Date.now())
  const world = { ...(await makeWorld()), chain, spki: tls.spkiSha256 }
  const published: Published = { bundle: await signBundle(world, currentBundle(world)) }
  const write = async (name: string, content: string | Bytes) => {
    await writeFile(file(name), content)
    return file(name)
  }
  await writeFiles(world, published.bundle, write)
  const answer = await answers(world, published)
  const servers = [
    createHttpServer(answer),
    createHttpsServer({ cert: tls.certPem, key: tls.keyPem }, answer),
  ]
  const [httpPort, httpsPort] = await Promise.all(servers.map(listen))
  const secure = `https://127.0.0.1:${httpsPort}`
  return {
    world,
    plain: `http://127.0.0.1:${httpPort}`,
    secure,
    captured: `${secure}/captured`,
    listed: `${secure}/listed`,
    sealing: `${secure}/sealing`,
    swapped: `${secure}/swapped`,
    garbled: `${secure}/garbled`,
    file,
    write,
    publish: (bundle, logProofs) => void Object.assign(published, { bundle, logProofs }),
    async close() {
      for (const server of servers) server.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** What the router publishes now. */
interface Published {
  readonly bundle: string
  readonly logProofs?: LogProofs
}

type Document = string | Bytes

async function answers(world: World, published: Published): Promise<RequestListener> {
  const { jwk, kid } = world.receiptKey
  const crl = await currentList([], world)
  const hpke = await makeHpkeKey()
  const sealing = (query: URLSearchParams) =>
    currentEnvelope(world, query.get('nonce') ?? '', { hpke: hpke.configSha256 })
  const documents: Record<string, (query: URLSearchParams) => Promise<Document> | Document> = {
    '/.well-known/trust.json': () =>
      JSON.stringify({ trust_bundle_jws: published.bundle, log_proofs: published.logProofs }),
    '/.well-known/jwks.json': () => JSON.stringify({ keys: [{ ...jwk, kid }] }),
    '/attestation': (query) => currentEnvelope(world, query.get('nonce') ?? ''),
    '/captured/attestation': () => currentEnvelope(world, ''),
    '/listed/attestation': (query) => currentEnvelope(world, query.get('nonce') ?? '', { crl }),
    '/sealing/attestation': sealing,
    '/sealing/.well-known/hpke-keys': () => hpke.config,
    '/swapped/attestation': sealing,
    '/swapped/.well-known/hpke-keys': async () => (await makeHpkeKey()).config,
    '/garbled/attestation': sealing,
    '/garbled/.well-known/hpke-keys': () => hpke.config.slice(1),
  }
  return (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://router.test')
    const document = documents[pathname] ?? documents[pathname.replace(/^\/\w+/, '')]
    if (document === undefined) response.writeHead(404).end()
    else void Promise.resolve(document(searchParams)).then((text) => response.end(text))
  }
}

async function writeFiles(
  world: World,
  bundle: string,
  write: PublishedRouter['write'],
): Promise<void> {
  const { jwk, kid } = world.receiptKey
  await Promise.all([
    write('root.json', JSON.stringify(world.root.jwk)),
    write('other-root.json', JSON.stringify(world.manifestKey.jwk)),
    write('jwks.json', JSON.stringify({ keys: [{ ...jwk, kid }] })),
    write('bundle.jws', bundle),
    write('revoked.crl', await currentList([0x10001], world)),
    write('request', 'client request'),
    write('response', 'client response'),
    write(
      'receipt.json',
      JSON.stringify({ id: RECEIPT_ID, receipt: await currentReceipt(world, bundle) }),
    ),
  ])
}

/** The synthetic list has dates around another time. */
function currentList(serials: readonly number[], { chain }: World): Promise<Bytes> {
  const days = (Date.now() - NOW) / DAY_MS + 20
  return revocationList(serials, { issuer: chain.arkName, days })
}

async function currentEnvelope(
  world: World,
  nonce: string,
  { crl, hpke }: { readonly crl?: Bytes; readonly hpke?: string } = {},
): Promise<string> {
  const bound = { receipt_key_thumbprint: world.receiptKey.kid, nonce }
  const binding =
    hpke === undefined
      ? ({ label: 'cmr/report-data/v1', ...bound } as const)
      : ({
          label: 'cmr/report-data/v2',
          ...bound,
          configuration_sha256: 'c0'.repeat(32),
          hpke_key_config_sha256: hpke,
        } as const)
  const claimed = {
    issued_at: new Date().toISOString(),
    report_data_binding: binding,
    snp_crl_b64: crl && toBase64(crl),
  }
  return JSON.stringify(await envelopeOf(world, { claimed }))
}

async function currentReceipt(world: World, bundle: string): Promise<string> {
  const envelope = await currentEnvelope(world, '')
  const evidence_raw = z.record(z.string(), z.json()).parse(JSON.parse(envelope))
  const router = { trust_bundle_jws: bundle, evidence_raw, attestation_strength: 'simulated' }
  return receiptOf(world, { claims: { iat: Math.floor(Date.now() / 1000) }, router })
}
