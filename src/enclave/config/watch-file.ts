import { watch } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'

/** How long the file must be unchanged before it is read, ms: editors write in several steps. */
const DEBOUNCE_MS = 200

/**
 * Calls back after the file changed. The directory is watched, because editors and orchestrators replace a file
 * rather than write into it.
 * @returns a function that stops watching
 */
export function watchFile(file: string, onChange: () => void): () => void {
  const path = resolve(file)
  let timer: NodeJS.Timeout | undefined
  const watcher = watch(dirname(path), { persistent: false }, (_event, name) => {
    // Orchestrators swap a symbolic link beside the file, which is reported under another name.
    if (name !== null && name !== basename(path) && !name.startsWith('..')) return
    clearTimeout(timer)
    timer = setTimeout(onChange, DEBOUNCE_MS)
    timer.unref()
  })
  // If the directory is removed, watching ends; SIGHUP and the supervisor can still request a reload.
  watcher.on('error', () => watcher.close())
  return () => {
    clearTimeout(timer)
    watcher.close()
  }
}
