import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

/** A server that has nothing to do with the router, for attackers whose own weight is to be measured. */
export interface Decoy {
  readonly baseUrl: string
  close(): void
}

export async function openDecoy(): Promise<Decoy> {
  const child = fork(fileURLToPath(new URL('./siege-decoy-process.ts', import.meta.url)))
  const [port]: unknown[] = await once(child, 'message')
  return {
    baseUrl: `http://127.0.0.1:${z.int().parse(port)}`,
    close: () => void child.kill('SIGKILL'),
  }
}
