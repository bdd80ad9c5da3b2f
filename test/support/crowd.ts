import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

/** Unauthenticated clients that only occupy connections, in a separate process. */
export interface Crowd {
  /** How many connections were established. */
  readonly opened: number
  /** How many of them the other side has ended so far. */
  ended(): number
  leave(): void
}

export interface CrowdPlan {
  readonly port: number
  readonly count: number
  /** The addresses on loopback that they come from in turn. */
  readonly from: readonly string[]
  /** What each sends, once; nothing by default. */
  readonly first?: string
}

const reportSchema = z.object({ opened: z.int(), ended: z.int() })

/** Resolves when every connection has been tried. */
export async function gatherCrowd({ port, count, from, first = '' }: CrowdPlan): Promise<Crowd> {
  const script = fileURLToPath(new URL('./crowd-process.ts', import.meta.url))
  const child = fork(script, [String(port), String(count), from.join(' '), btoa(first)])
  let report = { opened: 0, ended: 0 }
  child.on('message', (message) => (report = reportSchema.parse(message)))
  await once(child, 'message')
  const { opened } = report
  return { opened, ended: () => report.ended, leave: () => void child.kill('SIGKILL') }
}
