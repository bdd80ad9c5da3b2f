import type { DaemonBoot } from '../../protocol/boot.ts'
import { loadConfig, parseConfig, type LoadedConfig } from './load-config.ts'
import type { StartupEnv } from './start-rules.ts'
import { watchFile } from './watch-file.ts'

/** The members of a reload from the supervisor; absent ones stay unchanged. */
export interface GivenConfig {
  /** The id of the supervisor's message, for the reply. */
  readonly id?: number | undefined
  readonly text?: string | undefined
  /** Values of all variables that the configuration names. */
  readonly secrets?: Readonly<Record<string, string>> | undefined
  readonly adminToken?: string | undefined
}

/** The source of the daemon's configuration: the supervisor, or, in a local stack, a file. */
export class ConfigSource {
  readonly #path: string
  readonly #startup: Omit<StartupEnv, 'adminToken'>
  #text: string | null
  /** Secrets take precedence over the environment. */
  #secrets: Readonly<Record<string, string>>
  #adminToken: string | null

  constructor(boot: DaemonBoot, env: StartupEnv['env']) {
    this.#path = boot.configPath
    this.#text = boot.configText
    this.#secrets = boot.secrets ?? {}
    this.#adminToken = boot.adminToken
    this.#startup = { env, platform: boot.platform, mode: boot.mode }
  }

  /**
   * The configuration from `given`, else the one in force, else the file.
   * @throws ConfigRefused when the configuration is invalid
   */
  load(given: GivenConfig = {}): Promise<LoadedConfig> {
    const text = given.text ?? this.#text
    const startup = {
      ...this.#startup,
      env: { ...this.#startup.env, ...(given.secrets ?? this.#secrets) },
      adminToken: given.adminToken ?? this.#adminToken,
    }
    return text === null ? loadConfig(this.#path, startup) : parseConfig(this.#path, text, startup)
  }

  /** Records the configuration that is in force from now on, and what was given for it. */
  adopted({ text, adminToken }: LoadedConfig, { secrets }: GivenConfig): void {
    if (this.#text !== null) this.#text = text
    this.#secrets = secrets ?? this.#secrets
    this.#adminToken = adminToken
  }

  /**
   * Calls back after the file changed, where the configuration comes from the file.
   * @returns a function that stops watching
   */
  watch(onChange: () => void): () => void {
    return this.#text === null ? watchFile(this.#path, onChange) : () => {}
  }
}
