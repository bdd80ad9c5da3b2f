import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { SimulatedChipKeys } from '../../protocol/boot.ts'
import { startChild, type Child } from './child.ts'
import type { Started } from './process-restarter.ts'
import { firstMessage } from './first-message.ts'

const STANDIN = fileURLToPath(new URL('../../standin/main.ts', import.meta.url))

/** The address and identity of the stand-in; passed to its successor, so that they stay the same. */
export interface StandinReady {
  readonly port: number
  /** The same answers over HTTPS, with evidence. */
  readonly tlsPort: number
  /** Public half of its release root. */
  readonly rootJwk: Readonly<Record<string, unknown>>
  readonly identity: string
}

/** Starts the stand-in provider, on any ports if there was none before. Resolves when it listens. */
export async function startStandin(
  before: StandinReady | undefined,
  logFile: string,
): Promise<Started<StandinReady>> {
  const child = await startChild({
    account: 'worker',
    file: execPath,
    args: [STANDIN, String(before?.port ?? 0), String(before?.tlsPort ?? 0)],
    logFile,
    ...(before === undefined ? {} : { environment: { STANDIN_IDENTITY: before.identity } }),
    stdin: 'ignore',
    extra: 'ipc',
  })
  return { child, ready: await firstMessage<StandinReady>(child) }
}

/** Sends the stand-in its simulated chip; the message is lost if the stand-in has just ended. */
export function sendToStandin(standin: Child, chip: SimulatedChipKeys): void {
  if (standin.process.connected) standin.process.send({ type: 'chip', chip }, () => {})
}
