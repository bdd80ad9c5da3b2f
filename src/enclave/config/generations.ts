import type { LoadedConfig } from './load-config.ts'

/** A configuration the daemon accepted, numbered from 1. */
export interface Generation extends LoadedConfig {
  readonly generation: number
}

export interface GenerationTools {
  readonly load: () => Promise<LoadedConfig>
  /** Puts a configuration and the files it names into effect, or throws and leaves everything as it was. */
  readonly adopt: (loaded: LoadedConfig) => Promise<void>
  readonly onReloaded: (generation: number) => void
  readonly onRefused: (reason: string) => void
}

/** The configuration in effect. A wrong new one is reported and changes nothing. */
export class Generations {
  readonly #tools: GenerationTools
  #current: Generation
  #running: Promise<void> = Promise.resolve()

  constructor(first: LoadedConfig, tools: GenerationTools) {
    this.#current = { ...first, generation: 1 }
    this.#tools = tools
  }

  get current(): Generation {
    return this.#current
  }

  /** Reads the file again; calls queue up behind each other. Never rejects. */
  reload(): Promise<void> {
    this.#running = this.#running.then(() => this.#reloadNow())
    return this.#running
  }

  async #reloadNow(): Promise<void> {
    try {
      const loaded = await this.#tools.load()
      await this.#tools.adopt(loaded)
      if (textOf(loaded) === textOf(this.#current)) return
      this.#current = { ...loaded, generation: this.#current.generation + 1 }
      this.#tools.onReloaded(this.#current.generation)
    } catch (error) {
      this.#tools.onRefused(error instanceof Error ? error.message : 'unknown error')
    }
  }
}

/** A file that was only touched makes no generation. */
function textOf({ sha256, providerApiKeys }: LoadedConfig): string {
  return JSON.stringify([sha256, providerApiKeys])
}
