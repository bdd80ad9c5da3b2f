import { execPath } from 'node:process'
import { StartError } from './start-error.ts'

/** The first Node with everything the daemon and these scripts use. */
const MIN_NODE_MAJOR = 24
/** workerd ends when descriptors run out; below this, a few thousand streams are enough for that. */
const MIN_OPEN_FILES = 16_384
const TARGET_OPEN_FILES = 65_536
const RAISED = 'CMR_OPEN_FILES_RAISED'

/**
 * Refuses a Node that is too old and a limit on open files that is too low. Node has raised the soft limit
 * to the hard one by now; where root may raise the hard one too, the process starts itself again under it.
 * @throws StartError when a part cannot start
 */
export function checkRuntime(): void {
  const major = Number(process.versions.node.split('.')[0])
  if (major < MIN_NODE_MAJOR) {
    throw new StartError(
      `Node ${process.versions.node} is too old: ${MIN_NODE_MAJOR} or later is needed ("npm ci" installs one for "npm start")`,
    )
  }
  if (openFilesLimit() >= MIN_OPEN_FILES) return
  if (process.getuid?.() === 0 && process.env[RAISED] === undefined) restartWithMoreFiles()
  throw new StartError(
    `at most ${openFilesLimit()} files may be open, ${MIN_OPEN_FILES} are needed: raise it with "ulimit -n ${TARGET_OPEN_FILES}"`,
  )
}

/** How many files a process may have open, this one and its children. */
export function openFilesLimit(): number {
  const limits: unknown = process.report.getReport()
  const soft = /"open_files":\{"soft":"?(\d+|unlimited)/.exec(JSON.stringify(limits))?.[1]
  return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
}

function restartWithMoreFiles(): void {
  const script = `ulimit -n ${TARGET_OPEN_FILES} 2>/dev/null; exec "$0" "$@"`
  const args = ['sh', '-c', script, execPath, ...process.argv.slice(1)]
  process.execve?.('/bin/sh', args, { ...process.env, [RAISED]: '1' })
}
