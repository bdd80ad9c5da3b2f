import { execPath } from 'node:process'
import { StartError } from './start-error.ts'

/** The first Node version with everything that the daemon and the commands use. */
const MIN_NODE_MAJOR = 24
/** workerd exits when file descriptors run out. Below this limit a few thousand streams can cause that. */
const MIN_OPEN_FILES = 16_384
const TARGET_OPEN_FILES = 65_536
const RAISED = 'CMR_OPEN_FILES_RAISED'

/**
 * Checks the version of Node and the limit on open files. Node itself raises the soft limit to the hard one; where the
 * process runs as root, it restarts itself with a higher hard limit.
 * @throws StartError when Node is too old or the limit too low
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

/** The limit on open files of this process and its children. */
export function openFilesLimit(): number {
  const limits: unknown = process.report.getReport()
  const soft = /"open_files":\{"soft":"?(\d+|unlimited)/.exec(JSON.stringify(limits))?.[1]
  return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
}

/** Whether this process and its children may write their memory to the disk when they crash. */
export function writesCoreDumps(): boolean {
  const limits: unknown = process.report.getReport()
  return !/"core_file_size_blocks":\{"soft":0,/.test(JSON.stringify(limits))
}

function restartWithMoreFiles(): void {
  const script = `ulimit -n ${TARGET_OPEN_FILES} 2>/dev/null; exec "$0" "$@"`
  const args = ['sh', '-c', script, execPath, ...process.argv.slice(1)]
  process.execve?.('/bin/sh', args, { ...process.env, [RAISED]: '1' })
}
