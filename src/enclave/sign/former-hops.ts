import type { RouterHop } from './router-block.ts'

/** About as many as there are reloads during the longest stream; each hop has about 10 KiB. */
const MAX_HOPS = 256

/**
 * The router's hops under former configurations. An exchange is signed under the configuration that it began with, so
 * that its receipt names the configuration that served it.
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

  get all(): RouterHop[] {
    return [...this.#hops.values()]
  }

  find(configurationSha256: string): RouterHop | undefined {
    return this.#hops.get(configurationSha256)
  }
}
