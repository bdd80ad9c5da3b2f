import type { EventEmitter } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { DaemonBoot, DaemonReady, FromDaemon, ToDaemon } from '../../protocol/boot.ts'
import { startChild, type Child } from './child.ts'
import { orFailure } from './first-message.ts'
import { nodeProgram } from './node-program.ts'
import type { Started } from './process-restarter.ts'

const DAEMON = fileURLToPath(new URL('../../enclave/main.ts', import.meta.url))

/**
 * Starts the enclave daemon and sends it its keys over the IPC channel.
 * @throws Error when the daemon refuses, with its reason; its process has ended then
 */
export async function startDaemon(
  boot: DaemonBoot,
  logFile: string,
  said: (message: FromDaemon) => void,
): Promise<Started<DaemonReady>> {
  const child = await startChild({
    account: 'daemon',
    ...nodeProgram(DAEMON),
    logFile,
    stdin: 'ignore',
    extra: 'ipc',
  })
  const outcome = startOutcome(child.process, said)
  sendToDaemon(child, { type: 'boot', boot })
  const message = await orFailure(child, outcome)
  if (message.type === 'ready') return { child, ready: message.ready }
  await child.stop(0)
  throw new Error(message.reason)
}

type StartOutcome = Extract<FromDaemon, { type: 'ready' | 'refused' }>

/** Resolves with the result of a daemon's start. All other messages, before or after it, are passed to `said`. */
export function startOutcome(
  daemon: Pick<EventEmitter, 'on'>,
  said: (message: FromDaemon) => void,
): Promise<StartOutcome> {
  const { promise, resolve } = Promise.withResolvers<StartOutcome>()
  let isOver = false
  daemon.on('message', (message: FromDaemon) => {
    if (isOver || (message.type !== 'ready' && message.type !== 'refused')) return said(message)
    isOver = true
    return resolve(message)
  })
  return promise
}

/** Sends one message to a daemon; it is lost if the daemon has just ended. */
export function sendToDaemon(daemon: Child, message: ToDaemon): void {
  if (daemon.process.connected) daemon.process.send(message, () => {})
}
