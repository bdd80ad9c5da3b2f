import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { fromAttackersSchema, type FromAttackers, type ToAttackers } from './siege-messages.ts'

/** How often each attack was answered with which status, or with `none`. */
export type Deeds = Extract<FromAttackers, { type: 'deeds' }>['deeds']

/** The attackers' process. */
export interface Attackers {
  readonly pid: number | undefined
  readonly providerPort: number
  /** Begins the attacks named, each with its key. */
  attack(baseUrl: string, keys: Readonly<Record<string, string>>): void
  /** Ends them, and returns what they got. */
  stop(): Promise<Deeds>
  close(): void
}

export async function openAttackers(): Promise<Attackers> {
  const child = fork(fileURLToPath(new URL('./siege-attackers-process.ts', import.meta.url)))
  const opened = await next(child)
  if (opened.type !== 'open') throw new Error('the attackers did not come up')
  const send = (message: ToAttackers) => child.send(message)
  return {
    pid: child.pid,
    providerPort: opened.providerPort,
    attack: (baseUrl, keys) => send({ type: 'attack', baseUrl, keys: { ...keys } }),
    stop: async () => {
      send({ type: 'stop' })
      const told = await next(child)
      return told.type === 'deeds' ? told.deeds : {}
    },
    close: () => void child.kill('SIGKILL'),
  }
}

/** What it says next. @throws Error when it ends instead */
async function next(child: ChildProcess): Promise<FromAttackers> {
  const over = new AbortController()
  try {
    const ended = once(child, 'exit', { signal: over.signal }).then(() => {
      throw new Error('the attackers have ended')
    })
    ended.catch(() => {})
    const [message]: unknown[] = await Promise.race([
      once(child, 'message', { signal: over.signal }),
      ended,
    ])
    return fromAttackersSchema.parse(message)
  } finally {
    over.abort()
  }
}
