import type { GivenConfig } from './config-source.ts'
import type { LoadedConfig } from './load-config.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

/** A configuration the daemon accepted, numbered from 1. */
export interface Generation extends LoadedConfig {
  readonly generation: number
}

export interface GenerationDeps {
  /** Loads the given configuration, or the current one again. */
  readonly load: (given?: GivenConfig) => Promise<LoadedConfig>
  /** Puts a configuration and the files it names into effect, or throws and changes nothing. */
  readonly adopt: (loaded: LoadedConfig, given: GivenConfig) => Promise<void>
  /** Called with the result of a reload, and what was given for it. */
  readonly onUnchanged: (given: GivenConfig) => void
  readonly onReloaded: (generation: Generation, given: GivenConfig) => void
  readonly onRefused: (reason: string, given: GivenConfig) => void
}

/** The configuration in effect. An invalid new one is reported and changes nothing. */
export class Generations {
  readonly #deps: GenerationDeps
  #current: Generation
  #running: Promise<void> = Promise.resolve()

  constructor(first: LoadedConfig, deps: GenerationDeps) {
    this.#current = { ...first, generation: 1 }
    this.#deps = deps
  }

  get current(): Generation {
    return this.#current
  }

  /**
   * Loads and adopts the given configuration, or the current source again. Calls run one after another. Never
   * rejects.
   */
  reload(given: GivenConfig = {}): Promise<void> {
    this.#running = this.#running.then(() => this.#reloadNow(given))
    return this.#running
  }

  async #reloadNow(given: GivenConfig): Promise<void> {
    try {
      const loaded = await this.#deps.load(given)
      await this.#deps.adopt(loaded, given)
      if (textOf(loaded) === textOf(this.#current)) {
        this.#deps.onUnchanged(given)
        return
      }
      this.#current = { ...loaded, generation: this.#current.generation + 1 }
      this.#deps.onReloaded(this.#current, given)
    } catch (error) {
      this.#deps.onRefused(messageOfThrown(error), given)
    }
  }
}

/** What makes a generation new: a file that was rewritten with the same content does not. */
function textOf(loaded: LoadedConfig): string {
  const { sha256, providerApiKeys, webhookSecrets, adminToken } = loaded
  return JSON.stringify([sha256, providerApiKeys, webhookSecrets, adminToken])
}
