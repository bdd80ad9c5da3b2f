import { join } from 'node:path'
import { execPath } from 'node:process'
import { startChild } from './child.ts'
import type { Started } from './keeper.ts'
import { firstMessage } from './first-message.ts'
import { PROJECT_DIR } from './settings.ts'

/** Starts the stand-in provider; port 0 = any. Resolves with its port when it listens. */
export async function startStandin(port: number, logFile: string): Promise<Started<number>> {
  const child = await startChild({
    file: execPath,
    args: [join(PROJECT_DIR, 'src/standin/main.ts'), String(port)],
    logFile,
    stdin: 'ignore',
    extra: 'ipc',
  })
  const { port: listening } = await firstMessage<{ readonly port: number }>(child)
  return { child, ready: listening }
}
