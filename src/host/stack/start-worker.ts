import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { z } from 'zod'
import { startChild } from './child.ts'
import { orFailure } from './first-message.ts'
import type { Started } from './process-restarter.ts'
import { WORKERD } from './workerd-config.ts'
import { workerdEnvironment } from './workerd-environment.ts'

/** The ports the worker listens on. */
export interface WorkerPorts {
  readonly http: number
  readonly https: number
  /** The supervisor's own port to this process, where the configuration has one. */
  readonly probe?: number
}

const listenSchema = z.object({
  event: z.literal('listen'),
  socket: z.enum(['http', 'https', 'probe']),
  port: z.int(),
})

export interface WorkerStart {
  readonly logFile: string
  /** Whether the configuration has a probe socket. */
  readonly probe?: boolean
}

/** Starts workerd with a binary configuration, given on its standard input. */
export async function startWorker(
  config: Buffer,
  { logFile, probe = false }: WorkerStart,
): Promise<Started<WorkerPorts>> {
  const child = await startChild({
    account: 'worker',
    file: WORKERD,
    args: ['serve', '--binary', '-', '--control-fd=3'],
    logFile,
    environment: workerdEnvironment(process.env['GLIBC_TUNABLES']),
    stdin: 'pipe',
    extra: 'pipe',
  })
  child.process.stdin?.on('error', () => {})
  child.process.stdin?.end(config)
  const control = child.process.stdio[3]
  if (!(control instanceof Readable)) throw new Error('descriptor 3 is not a pipe')
  return { child, ready: await orFailure(child, portsOf(control, probe)) }
}

async function portsOf(control: Readable, withProbe: boolean): Promise<WorkerPorts> {
  const ports: Partial<Record<keyof WorkerPorts, number>> = {}
  for await (const line of createInterface({ input: control })) {
    const parsed = listenSchema.safeParse(JSON.parse(line))
    if (parsed.success) ports[parsed.data.socket] = parsed.data.port
    const { http, https, probe } = ports
    if (http === undefined || https === undefined) continue
    if (withProbe && probe === undefined) continue
    control.resume()
    return { http, https, ...(probe === undefined ? {} : { probe }) }
  }
  return new Promise(() => {})
}
