import type { DaemonBoot } from '../../protocol/boot.ts'
import { loadConfig, parseConfig, type LoadedConfig, type StartupEnv } from './load-config.ts'
import { watchFile } from './watch-file.ts'

/** Where the daemon's configuration comes from: handed over by the supervisor, or, in a local stack, its file. */
export class ConfigSource {
  readonly #path: string
  readonly #around: StartupEnv
  #text: string | null

  constructor({ configPath, configText, platform, mode }: DaemonBoot, env: StartupEnv['env']) {
    this.#path = configPath
    this.#text = configText
    this.#around = { env, platform, mode }
  }

  /** What was handed over just now, else what is in force, else what the file says. @throws ConfigRefused */
  load(given?: string): Promise<LoadedConfig> {
    const text = given ?? this.#text
    return text === null
      ? loadConfig(this.#path, this.#around)
      : parseConfig(this.#path, text, this.#around)
  }

  /** Is told what is in force from now on. */
  adopted({ text }: LoadedConfig): void {
    if (this.#text !== null) this.#text = text
  }

  /** Calls back after the file changed, where it is the file that counts. Returns what ends it. */
  watch(onChange: () => void): () => void {
    return this.#text === null ? watchFile(this.#path, onChange) : () => {}
  }
}
