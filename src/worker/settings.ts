import type { RouterConfig, ServiceConfig } from '../protocol/config.ts'
import type { Log } from './http/log.ts'
import { LinkUnavailable, type Link } from './link/link.ts'
import { compileCatalogue, type Carried, type Catalogue } from './routing/catalogue.ts'
import { createRouteHealth, type RouteHealth } from './routing/health.ts'

/** One version of the configuration, compiled. */
export interface Settings {
  readonly generation: number
  readonly config: RouterConfig
  /** SHA-256 of the configuration file's bytes, lowercase hex. */
  readonly configurationSha256: string
  readonly catalogue: Catalogue
  readonly health: RouteHealth
  readonly adminToken: string
  /** Signing secrets by webhook endpoint. */
  readonly webhookSecrets: Readonly<Record<string, string>>
}

/**
 * The current version of the configuration, which the daemon provides. While the daemon is unreachable, the last known
 * version remains valid for operations that do not need the daemon. Until the first version arrives there is no
 * service.
 */
export class SettingsSource {
  readonly #link: Pick<Link, 'state' | 'config'>
  readonly #log: Log
  readonly #daemonCarries: Carried
  #current: Settings | undefined
  /** Generation and daemon of `#current`: a restarted daemon has a new key and counts generations from one again. */
  #version: string | undefined
  #health: { readonly rules: string; readonly value: RouteHealth } | undefined

  constructor(link: Pick<Link, 'state' | 'config'>, log: Log, daemonCarries: Carried) {
    this.#link = link
    this.#log = log
    this.#daemonCarries = daemonCarries
  }

  /** The last known version, if any, for operations that must not wait for the daemon. */
  get known(): Settings | undefined {
    return this.#current
  }

  /** @throws LinkUnavailable when there has been no configuration yet */
  async current(): Promise<Settings> {
    try {
      const { generation, kid } = await this.#link.state()
      const version = `${generation} of ${kid}`
      if (this.#current === undefined || version !== this.#version) {
        this.#current = await this.#load()
        this.#version = version
      }
    } catch (error) {
      if (!(error instanceof LinkUnavailable) || !this.#current) throw error
    }
    return this.#current
  }

  /** Route health survives a reload, unless the rules of the circuit breaker change. */
  #healthFor(breaker: ServiceConfig['breaker'], selection: ServiceConfig['selection']) {
    const rules = JSON.stringify({ breaker, selection })
    if (this.#health?.rules !== rules) {
      this.#health = { rules, value: createRouteHealth(breaker, selection) }
    }
    return this.#health.value
  }

  async #load(): Promise<Settings> {
    const {
      generation,
      config,
      configuration_sha256: configurationSha256,
      secrets,
    } = await this.#link.config()
    const { breaker, selection } = config.service
    this.#log('config_loaded', { generation, count: config.routes.length })
    return {
      generation,
      config,
      configurationSha256,
      catalogue: compileCatalogue(config, secrets.provider_api_keys, this.#daemonCarries),
      health: this.#healthFor(breaker, selection),
      adminToken: secrets.admin_token,
      webhookSecrets: secrets.webhook_secrets,
    }
  }
}
