import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Collects all garbage of the calling thread and returns its memory to the system, which V8 does not do by itself while
 * nothing is allocated. Blocks the thread for some tens of milliseconds.
 */
export function returnUnusedMemory(): void {
  // `gc` is only visible in contexts that are created while this flag is set (nodejs.org/api/v8.html,
  // nodejs.org/api/globals.html).
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('globalThis.gc')
  setFlagsFromString('--no-expose-gc')
  if (typeof collect !== 'function') return
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
