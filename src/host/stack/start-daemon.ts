import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { DaemonBoot, DaemonReady, FromDaemon, ToDaemon } from '../../protocol/boot.ts'
import { startChild, type Child } from './child.ts'
import { firstMessage } from './first-message.ts'
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
    file: execPath,
    args: [DAEMON],
    logFile,
    stdin: 'ignore',
    extra: 'ipc',
  })
  const answer = firstMessage<FromDaemon>(child)
  sendToDaemon(child, { type: 'boot', boot })
  const message = await answer
  if (message.type === 'ready') {
    child.process.on('message', (later: FromDaemon) => said(later))
    return { child, ready: message.ready }
  }
  await child.stop(0)
  throw new Error(message.type === 'refused' ? message.reason : `said "${message.type}" first`)
}

/** Sends one message to a daemon; it is lost if the daemon has just ended. */
export function sendToDaemon(daemon: Child, message: ToDaemon): void {
  if (daemon.process.connected) daemon.process.send(message, () => {})
}
