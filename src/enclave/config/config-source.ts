import type { DaemonBoot } from '../../protocol/boot.ts'
import { loadConfig, parseConfig, type LoadedConfig, type StartupEnv } from './load-config.ts'
import { watchFile } from './watch-file.ts'

/** What the supervisor sends with a reload; members that are absent stay unchanged. */
export interface GivenConfig {
  readonly text?: string | undefined
  readonly adminToken?: string | undefined
}

/** Where the daemon's configuration comes from: handed over by the supervisor, or, in a local stack, its file. */
export class ConfigSource {
  readonly #path: string
  readonly #around: Omit<StartupEnv, 'adminToken'>
  #text: string | null
  #adminToken: string | null

  constructor(boot: DaemonBoot, env: StartupEnv['env']) {
    this.#path = boot.configPath
    this.#text = boot.configText
    this.#adminToken = boot.adminToken
    this.#around = { env, platform: boot.platform, mode: boot.mode }
  }

  /**
   * What was handed over just now, else what is in force, else what the file says.
   * @throws ConfigRefused when the configuration cannot be used
   */
  load(given: GivenConfig = {}): Promise<LoadedConfig> {
    const text = given.text ?? this.#text
    const around = { ...this.#around, adminToken: given.adminToken ?? this.#adminToken }
    return text === null ? loadConfig(this.#path, around) : parseConfig(this.#path, text, around)
  }

  /** Records the configuration that is in force from now on. */
  adopted({ text, adminToken }: LoadedConfig): void {
    if (this.#text !== null) this.#text = text
    this.#adminToken = adminToken
  }

  /** Calls back after the file changed, where it is the file that counts. Returns what ends it. */
  watch(onChange: () => void): () => void {
    return this.#text === null ? watchFile(this.#path, onChange) : () => {}
  }
}
