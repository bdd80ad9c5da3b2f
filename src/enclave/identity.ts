import type { DaemonBoot, DaemonTls, FromDaemon } from '../protocol/boot.ts'
import { createSerialQueue } from '../protocol/serial-queue.ts'
import type { LoadedConfig } from './config/load-config.ts'
import { buildEnvelope, type ServedEnvelope } from './envelope/build-envelope.ts'
import { EnvelopeCache, type CachedEnvelope } from './envelope/envelope-cache.ts'
import { createMissingListNotice } from './envelope/missing-list.ts'
import { checkOwnEnvelope } from './envelope/self-check.ts'
import type { Release } from './release/release.ts'
import type { Releases } from './release/releases.ts'
import { FormerHops } from './sign/former-hops.ts'
import { createRouterHops } from './sign/router-hops.ts'
import type { RouterHop } from './sign/router-block.ts'
import type { AcceptedBundle } from '../verify/trust-bundle.ts'
import type { Machine } from './snp/machine.ts'
import type { ReportSource } from './snp/report-source.ts'

/** The identity that this instance can prove: its keys and its release, bound to reports of its machine. */
export interface Identity {
  readonly envelopes: EnvelopeCache
  readonly release: () => Release
  /** SHA-256 over the SPKI of the TLS key in service, lowercase hex. */
  readonly tlsSpkiSha256: () => string
  /**
   * This instance's hop under the configuration with that SHA-256; undefined where that configuration was never in
   * effect here.
   */
  readonly routerHop: (configurationSha256: string) => RouterHop | undefined
  /** All hops that `routerHop` can find; of two with the same configuration, the later one. */
  readonly routerHops: () => readonly RouterHop[]
  /**
   * Moves to the release of a new configuration.
   * @throws Error when no report can be captured, or the new evidence does not verify; nothing has changed then
   */
  adoptConfig(loaded: LoadedConfig): Promise<void>
  /**
   * Moves to a new TLS key.
   * @throws Error when no report can be captured, or the new evidence does not verify; nothing has changed then
   */
  adoptTls(tls: DaemonTls): Promise<void>
  /**
   * Moves to a new HPKE key, given by the SHA-256 of its configuration.
   * @throws Error when no report can be captured, or the new evidence does not verify; nothing has changed then
   */
  adoptHpkeKey(configSha256: string): Promise<void>
}

export interface IdentityInputs {
  readonly boot: DaemonBoot
  readonly machine: Machine
  readonly releases: Releases
  /** Thumbprint of the receipt key. */
  readonly kid: string
  readonly tls: DaemonTls
  /** SHA-256 of the configuration of the HPKE key, lowercase hex. */
  readonly hpkeKeyConfigSha256: string
  readonly first: LoadedConfig
  readonly now: () => number
  readonly notify: (message: FromDaemon) => void
  /** Called whenever an envelope was put into service. */
  readonly changed: () => void
}

/** Everything that an envelope binds, except the receipt key, which never changes. */
interface Bound {
  readonly release: Release
  readonly source: ReportSource
  readonly tls: DaemonTls
  readonly trustBundleUrl: string
  readonly configurationSha256: string
  readonly hpkeKeyConfigSha256: string
}

/** The path at which every instance publishes the bundle. */
const OWN_TRUST_BUNDLE = '/.well-known/trust.json'

/**
 * Captures the first report and puts its envelope into service.
 * @throws Error when no report can be captured, or outside local mode when the release cannot be verified
 */
export async function startIdentity(inputs: IdentityInputs): Promise<Identity> {
  const { boot, machine, kid, now, notify } = inputs
  const simulated = await machine.simulatedPolicy()
  let lastAccepted: AcceptedBundle | undefined
  const noticeMissingList = createMissingListNotice(notify)
  const make = async (of: Bound): Promise<CachedEnvelope> => {
    const served = await build(of, kid, '', now)
    noticeMissingList(served)
    const by = { release: of.release, simulated, lastAccepted, now: now() }
    return { ...served, check: await checkOwnEnvelope(served, by) }
  }
  let loaded = inputs.first
  let bound = await bind(loaded, inputs, inputs)
  const envelopes = new EnvelopeCache({
    buildFresh: (nonce) => build(bound, kid, nonce, now),
    make: async () => reported(await make(bound), notify),
    now,
    onFailure: (reason) => notify({ type: 'attestation_failed', reason }),
    onRestored: () => notify({ type: 'attestation_restored' }),
    onKept: inputs.changed,
  })
  const currentHop = createRouterHops(() => ({
    envelope: envelopes.last,
    trustBundleJws: bound.release.bundleJws,
    platform: boot.platform,
  }))
  const former = new FormerHops()
  /** Changes nothing until the new binding is proven. */
  const move = async (nextLoaded: LoadedConfig, next: Bound): Promise<void> => {
    const envelope = await make(next)
    requireProof(envelope, nextLoaded, lastAccepted)
    former.keep(bound.configurationSha256, currentHop())
    loaded = nextLoaded
    bound = next
    lastAccepted = envelope.check.accepted ?? lastAccepted
    envelopes.adopt(envelope)
  }
  await move(loaded, bound)
  const serialize = createSerialQueue()
  return {
    envelopes,
    release: () => bound.release,
    tlsSpkiSha256: () => bound.tls.spkiSha256,
    routerHop: (sha256) =>
      sha256 === bound.configurationSha256 ? currentHop() : former.find(sha256),
    routerHops: () => [...former.all, currentHop() ?? []].flat(),
    adoptConfig: (nextLoaded) =>
      serialize(async () => {
        const next = await bind(nextLoaded, bound, inputs)
        if (bindsSame(bound, next)) loaded = nextLoaded
        else await move(nextLoaded, next)
      }),
    adoptTls: (tls) => serialize(() => move(loaded, { ...bound, tls })),
    adoptHpkeKey: (hpkeKeyConfigSha256) =>
      serialize(() => move(loaded, { ...bound, hpkeKeyConfigSha256 })),
  }
}

function reported(envelope: CachedEnvelope, notify: IdentityInputs['notify']): CachedEnvelope {
  if (!envelope.check.verified) notify({ type: 'attestation_failed', reason: faultOf(envelope) })
  return envelope
}

async function bind(
  loaded: LoadedConfig,
  { tls, hpkeKeyConfigSha256 }: Pick<Bound, 'tls' | 'hpkeKeyConfigSha256'>,
  { boot, releases, machine }: IdentityInputs,
): Promise<Bound> {
  const release = await releases.of(loaded)
  return {
    release,
    source: await machine.source(release.identityTag),
    tls,
    trustBundleUrl: trustBundleUrlOf(loaded, boot),
    configurationSha256: loaded.sha256,
    hpkeKeyConfigSha256,
  }
}

/** Must be absolute, because verifiers may have received the evidence from another source. */
function trustBundleUrlOf({ config }: LoadedConfig, { ownUrl }: DaemonBoot): string {
  const given = config.service.trust_bundle_url
  if (given !== undefined) return given
  if (ownUrl === null) throw new Error('service.trust_bundle_url is missing')
  return new URL(OWN_TRUST_BUNDLE, ownUrl).href
}

function bindsSame(left: Bound, right: Bound): boolean {
  const text = [left, right].map(({ release, trustBundleUrl, configurationSha256 }) =>
    JSON.stringify([release, trustBundleUrl, configurationSha256]),
  )
  return text[0] === text[1]
}

/**
 * Refuses an envelope that clients could not verify. Only a local stack may start with one, and a reload must not
 * replace a verifiable envelope with one that cannot be verified.
 */
function requireProof(
  envelope: CachedEnvelope,
  { config }: LoadedConfig,
  lastAccepted: AcceptedBundle | undefined,
): void {
  const mayBeUnverified = config.service.mode === 'local' && lastAccepted === undefined
  if (!envelope.check.verified && !mayBeUnverified) throw new Error(faultOf(envelope))
}

function faultOf({ check }: CachedEnvelope): string {
  return `this instance cannot prove its release:\n  ${check.failed.join('\n  ')}`
}

function build(
  { release, source, tls, trustBundleUrl, configurationSha256, hpkeKeyConfigSha256 }: Bound,
  kid: string,
  nonce: string,
  now: () => number,
): Promise<ServedEnvelope> {
  const subject = {
    kid,
    tlsSpkiSha256: tls.spkiSha256,
    identityTag: release.identityTag,
    manifestJws: release.manifestJws,
    trustBundleUrl,
    configurationSha256,
    hpkeKeyConfigSha256,
  }
  return buildEnvelope(source, subject, { nonce, now })
}
