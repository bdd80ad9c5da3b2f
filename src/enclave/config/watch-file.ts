import { watch } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'

/** Editors write in several steps; the file is read once they are quiet. */
const DEBOUNCE_MS = 200

/**
 * Calls back after the file changed. It is the directory that is watched, because editors and orchestrators replace
 * a file rather than write into it. Returns what ends the watch.
 */
export function watchFile(file: string, onChange: () => void): () => void {
  const path = resolve(file)
  let timer: NodeJS.Timeout | undefined
  const watcher = watch(dirname(path), { persistent: false }, (_event, name) => {
    // Orchestrators swap a symbolic link beside the file, which shows as another name.
    if (name !== null && name !== basename(path) && !name.startsWith('..')) return
    clearTimeout(timer)
    timer = setTimeout(onChange, DEBOUNCE_MS)
    timer.unref()
  })
  // A directory that goes away ends the watch; SIGHUP and the supervisor can still ask for a reload.
  watcher.on('error', () => watcher.close())
  return () => {
    clearTimeout(timer)
    watcher.close()
  }
}
