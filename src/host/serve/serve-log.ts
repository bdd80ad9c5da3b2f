import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StateDir } from '../stack/state-dir.ts'

/** Prints a line, and appends it with its time to `log/serve.log`. */
export function openServeLog(state: StateDir): (text: string) => void {
  const file = join(state.directory('log'), 'serve.log')
  return (text) => {
    console.log(text)
    appendFileSync(file, `${new Date().toISOString()} ${text.trim()}\n`, { mode: 0o600 })
  }
}
