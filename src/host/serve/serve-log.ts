import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StateDir } from '../stack/state-dir.ts'

/** Prints what the supervisor has to say, and keeps it with its time in `log/serve.log`. */
export function openServeLog(state: StateDir): (text: string) => void {
  const file = join(state.directory('log'), 'serve.log')
  return (text) => {
    console.log(text)
    appendFileSync(file, `${new Date().toISOString()} ${text.trim()}\n`, { mode: 0o600 })
  }
}
