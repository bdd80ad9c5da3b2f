import type { DaemonBoot, DaemonTls, FromDaemon } from '../protocol/boot.ts'
import type { LoadedConfig } from './config/load-config.ts'
import { buildEnvelope, type ServedEnvelope } from './envelope/build-envelope.ts'
import { EnvelopeKeeper } from './envelope/envelope-keeper.ts'
import { checkOwnEnvelope } from './envelope/self-check.ts'
import type { ReceiptKey } from './keys/receipt-key.ts'
import type { Release } from './release/release.ts'
import type { Releases } from './release/releases.ts'
import { createRouterHops } from './sign/router-hops.ts'
import type { RouterHop } from './sign/router-block.ts'
import type { Machine } from './snp/machine.ts'
import type { ReportSource } from './snp/report-source.ts'

/** What this instance can prove of itself: its keys and its release, bound to reports of its machine. */
export interface Identity {
  readonly envelopes: EnvelopeKeeper
  readonly release: () => Release
  readonly routerHop: () => RouterHop | undefined
  /** Moves to the release of a new configuration. Rejects, and changes nothing, when no report can be captured. */
  adoptConfig(loaded: LoadedConfig): Promise<void>
  /** Moves to a new TLS key. Rejects, and changes nothing, when no report can be captured. */
  adoptTls(tls: DaemonTls): Promise<void>
}

export interface IdentityInputs {
  readonly boot: DaemonBoot
  readonly machine: Machine
  readonly releases: Releases
  readonly key: ReceiptKey
  readonly tls: DaemonTls
  readonly first: LoadedConfig
  readonly now: () => number
  readonly notify: (message: FromDaemon) => void
}

/** Everything an envelope is made of but the receipt key, which never changes. */
interface Bound {
  readonly release: Release
  readonly source: ReportSource
  readonly tls: DaemonTls
  readonly trustBundleUrl: string
}

/** Where every instance publishes the bundle; relative to the address the envelope came from. */
const OWN_TRUST_BUNDLE = '/.well-known/trust.json'

/** Captures the first report. Rejects when there is none. */
export async function startIdentity(inputs: IdentityInputs): Promise<Identity> {
  const { boot, machine, releases, key, now, notify } = inputs
  const bind = async (loaded: LoadedConfig, tls: DaemonTls): Promise<Bound> => {
    const release = await releases.of(loaded)
    const source = await machine.source(release.identityTag)
    const trustBundleUrl = loaded.config.service.trust_bundle_url ?? OWN_TRUST_BUNDLE
    return { release, source, tls, trustBundleUrl }
  }
  let loaded = inputs.first
  let bound = await bind(loaded, inputs.tls)
  const envelopes = new EnvelopeKeeper({
    build: (nonce) => build(bound, key.kid, nonce, now),
    check: (envelope) => checkOwnEnvelope(envelope, now()),
    now,
    onFailure: (reason) => notify({ type: 'attestation_failed', reason }),
    onRestored: () => notify({ type: 'attestation_restored' }),
  })
  await envelopes.refresh()
  const move = async (next: LoadedConfig, tls: DaemonTls): Promise<void> => {
    const before = bound
    bound = await bind(next, tls)
    try {
      await envelopes.renew()
      loaded = next
    } catch (error) {
      bound = before
      throw error
    }
  }
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = (step: () => Promise<void>): Promise<void> => {
    const turn = last.then(step)
    last = turn.catch(() => {})
    return turn
  }
  return {
    envelopes,
    release: () => bound.release,
    routerHop: createRouterHops(() => ({
      envelope: envelopes.last,
      trustBundleJws: bound.release.bundleJws,
      platform: boot.platform,
    })),
    adoptConfig: (next) => inTurn(() => move(next, bound.tls)),
    adoptTls: (tls) => inTurn(() => move(loaded, tls)),
  }
}

function build(
  { release, source, tls, trustBundleUrl }: Bound,
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
  }
  return buildEnvelope(source, subject, { nonce, now })
}
