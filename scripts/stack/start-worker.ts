import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { z } from 'zod'
import { startChild } from './child.ts'
import { orFailure } from './first-message.ts'
import type { Started } from './keeper.ts'
import { WORKERD } from './workerd-config.ts'

/** The ports the worker listens on. */
export interface WorkerPorts {
  readonly http: number
  readonly https: number
}

const listenSchema = z.object({
  event: z.literal('listen'),
  socket: z.enum(['http', 'https']),
  port: z.int(),
})

/** Starts workerd with a binary configuration, given on its standard input. */
export async function startWorker(config: Buffer, logFile: string): Promise<Started<WorkerPorts>> {
  const child = await startChild({
    file: WORKERD,
    args: ['serve', '--binary', '-', '--control-fd=3'],
    logFile,
    stdin: 'pipe',
    extra: 'pipe',
  })
  child.process.stdin?.on('error', () => {})
  child.process.stdin?.end(config)
  const control = child.process.stdio[3]
  if (!(control instanceof Readable)) throw new Error('descriptor 3 is not a pipe')
  return { child, ready: await orFailure(child, portsOf(control)) }
}

async function portsOf(control: Readable): Promise<WorkerPorts> {
  const ports: Partial<Record<'http' | 'https', number>> = {}
  for await (const line of createInterface({ input: control })) {
    const told = listenSchema.safeParse(JSON.parse(line))
    if (told.success) ports[told.data.socket] = told.data.port
    if (ports.http !== undefined && ports.https !== undefined) {
      control.resume()
      return { http: ports.http, https: ports.https }
    }
  }
  return new Promise(() => {})
}
