import { EventEmitter } from 'node:events'
import type {
  DaemonBoot,
  DaemonReady,
  DaemonTls,
  FromDaemon,
  TlsMaterial,
} from '../protocol/boot.ts'
import { watchClock } from './clock/clock-watch.ts'
import { ProvenTime } from './clock/proven-time.ts'
import { Generations, type GenerationDeps } from './config/generations.ts'
import type { LoadedConfig } from './config/load-config.ts'
import { ConfigSource, type GivenConfig } from './config/config-source.ts'
import { makeHpkeKey, type HpkeKey } from './hpke/hpke-key.ts'
import { HpkeKeyring } from './hpke/hpke-keyring.ts'
import { KeyRotation } from './hpke/key-rotation.ts'
import { generateReceiptKey, receiptKeyOf } from './keys/receipt-key.ts'
import { adoptTlsIdentity, makeTlsIdentity } from './keys/tls-identity.ts'
import type { Changes } from './carrier/changes.ts'
import { createLinkRoutes, type Hpke } from './link/routes.ts'
import type { Log } from './log.ts'
import { bundleIssuedAt } from './release/bundle-issued-at.ts'
import { storeRootKey } from './release/root-key-file.ts'
import { createReleases } from './release/releases.ts'
import { openLinks } from './open-links.ts'
import type { openMachine } from './open-machine.ts'
import { openGate } from './sealed/open-gate.ts'
import type { Offers } from './sealed/offers.ts'
import type { KdsWaits } from './snp/kds.ts'
import { startIdentity, type Identity } from './identity.ts'
import { Telemetry } from './telemetry/telemetry.ts'
import { openUpstream, type Upstream } from './upstream.ts'

export interface DaemonDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Milliseconds. */
  readonly now: () => number
  /** Milliseconds that never go back. */
  readonly monotonic: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  /** The id of this thread, a UUID. */
  readonly thread: string
  readonly notify: (message: FromDaemon) => void
  readonly log: Log
  /** Passes unsealed secrets to the supervisor, which puts them into effect. */
  readonly offers: Pick<Offers, 'offer'>
  readonly kdsWaits: KdsWaits
  readonly openMachine: typeof openMachine
}

export interface Daemon {
  readonly ready: DaemonReady
  /** Adopts this configuration, or reads its source again. Never rejects: the result is sent to the supervisor. */
  reload(given?: GivenConfig): Promise<void>
  /**
   * Adopts the given TLS key or a new one, with an envelope that binds it.
   * @throws Error when no report can be captured
   */
  renewTls(given?: TlsMaterial): Promise<DaemonTls>
  /** Terminates the carrier of that port; a new one is started. */
  endCarrier(port: number): void
  /** Counts clients that the front disconnected because they did not read. */
  clientsUnread(count: number): void
  close(): Promise<void>
}

/**
 * Loads the configuration, makes the keys, opens the machine and the release, captures the first report, and starts the
 * link servers.
 * @throws Error when a step fails, before anything is served; the message is for the operator
 */
export async function startDaemon(boot: DaemonBoot, deps: DaemonDeps): Promise<Daemon> {
  const { now, kdsWaits, random, thread, notify, log } = deps
  const source = new ConfigSource(boot, deps.env)
  const first = await source.load()
  const machine = deps.openMachine(boot, deps)
  const releases = createReleases(boot, machine, now)
  const { hpkeKey, receiptKey, ...keys } = await makeKeys(boot, first, now())
  const changes: Changes = new EventEmitter()
  const changed = () => void changes.emit('changed')
  const bound = { boot, machine, releases, ...keys, first }
  const identity = await startIdentity({ ...bound, now, notify, changed })
  const hpke = openHpke(hpkeKey, identity, deps)
  const current = () => generations.current
  const telemetry = await Telemetry.open(now, first.config.service)
  const own = { boot, machine, kdsWaits, now, random, thread, changed, log }
  const signer = { key: receiptKeyOf(receiptKey), routerHop: identity.routerHop }
  const upstream = await openUpstream({ ...own, first, current, signer })
  const generations = new Generations(first, {
    load: (given) => source.load(given),
    adopt: (loaded, given) => adopt(loaded, given, { identity, ...upstream, telemetry, source }),
    ...outcomes(notify, changed),
  })
  const clock = openClock(identity, deps)
  const routes = createLinkRoutes({
    unsealing: openGate({ ...deps, ...identity, ...clock, current }),
    ...upstream,
    ...identity,
    hpke,
    telemetry,
    generation: current,
  })
  const sources = { generation: current, identity, upstream, counts: telemetry.host }
  const links = await openLinks({ ...deps, boot, receiptKey, ...sources, routes, changes })
  const endings = [clock.close, source.watch(() => void generations.reload())]
  return {
    ready: {
      ...links.ports,
      tls: keys.tls,
      kid: receiptKey.kid,
      rootKeyPath: await storeRootKey(boot.stateDir, identity.release().rootPublicJwk),
      generation: generations.current.generation,
      release: await releases.exportForRestart(),
    },
    reload: (given) => generations.reload(given),
    async renewTls(given) {
      const renewed = await obtainTls(given ?? null, domainsOf(current()), now())
      await identity.adoptTls(renewed)
      return renewed
    },
    endCarrier: (port) => links.endCarrier(port),
    clientsUnread: (count) => telemetry.host.clientsUnread(count),
    async close() {
      for (const end of endings) end()
      hpke.rotation.close()
      identity.envelopes.close()
      upstream.close()
      await Promise.all([links.close(), telemetry.close()])
    },
  }
}

interface Adopting {
  readonly identity: Pick<Identity, 'adoptConfig'>
  readonly proofs: Pick<Upstream['proofs'], 'configure'>
  readonly telemetry: Pick<Telemetry, 'prepare'>
  readonly source: Pick<ConfigSource, 'adopted'>
}

/** Puts a configuration into effect. Steps that can fail come first, so that a failure changes nothing. */
async function adopt(
  loaded: LoadedConfig,
  given: GivenConfig,
  { identity, proofs, telemetry, source }: Adopting,
): Promise<void> {
  const configureTelemetry = await telemetry.prepare(loaded.config.service)
  await identity.adoptConfig(loaded)
  proofs.configure(loaded)
  configureTelemetry()
  source.adopted(loaded, given)
}

/** The proven time, which limits how far the host can set back the clock, and the watch that compares both. */
function openClock({ release }: Pick<Identity, 'release'>, deps: DaemonDeps) {
  const proven = new ProvenTime(deps.now)
  const refresh = () => proven.note(bundleIssuedAt(release()))
  const close = watchClock({ ...deps, proven, refresh })
  return { proven, close }
}

async function makeKeys(boot: DaemonBoot, loaded: LoadedConfig, now: number) {
  const [receiptKey, hpkeKey, tls] = await Promise.all([
    generateReceiptKey(),
    makeHpkeKey(),
    obtainTls(boot.tls, domainsOf(loaded), now),
  ])
  return {
    receiptKey,
    kid: receiptKey.kid,
    hpkeKey,
    hpkeKeyConfigSha256: hpkeKey.configSha256,
    tls,
  }
}

/** The HPKE keys. A report already binds the first one. */
function openHpke(
  first: HpkeKey,
  identity: Identity,
  { now, notify }: Pick<DaemonDeps, 'now' | 'notify'>,
): Hpke {
  const keyring = new HpkeKeyring(first, now)
  const rotation = new KeyRotation({
    keyring,
    make: makeHpkeKey,
    prove: (configSha256) => identity.adoptHpkeKey(configSha256),
    onFailure: (reason) => notify({ type: 'attestation_failed', reason }),
  })
  return { keyring, rotation }
}

/** Reports the result of a reload to the supervisor. */
function outcomes(
  notify: DaemonDeps['notify'],
  changed: () => void,
): Pick<GenerationDeps, 'onReloaded' | 'onUnchanged' | 'onRefused'> {
  return {
    onReloaded: ({ generation, text }, { id }) => {
      changed()
      notify({ type: 'reloaded', id, generation, configText: text })
    },
    onUnchanged: ({ id }) => notify({ type: 'reload_unchanged', id }),
    onRefused: (reason, { id }) => notify({ type: 'reload_refused', id, reason }),
  }
}

function domainsOf({ config }: Pick<LoadedConfig, 'config'>): readonly string[] {
  return config.service.tls?.domains ?? []
}

function obtainTls(
  kept: TlsMaterial | null,
  domains: readonly string[],
  now: number,
): Promise<DaemonTls> {
  return kept === null ? makeTlsIdentity(domains, new Date(now)) : adoptTlsIdentity(kept)
}
