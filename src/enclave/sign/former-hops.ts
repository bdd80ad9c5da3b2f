import type { RouterHop } from './router-block.ts'

/** About as many reloads as happen while the longest stream runs; each is some 10 KiB. */
const MAX_HOPS = 256

/**
 * The router's hops under configurations that are no longer in force: an exchange that began under one is signed under
 * it, so that its receipt names the configuration that answered.
 */
export class FormerHops {
  readonly #hops = new Map<string, RouterHop>()

  keep(configurationSha256: string, hop: RouterHop | undefined): void {
    if (hop === undefined) return
    this.#hops.delete(configurationSha256)
    this.#hops.set(configurationSha256, hop)
    const [oldest] = this.#hops.keys()
    if (this.#hops.size > MAX_HOPS && oldest !== undefined) this.#hops.delete(oldest)
  }

  find(configurationSha256: string): RouterHop | undefined {
    return this.#hops.get(configurationSha256)
  }
}
