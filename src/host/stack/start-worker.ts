import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { z } from 'zod'
import { startChild } from './child.ts'
import { drainBeforeStop } from './drain-before-stop.ts'
import { orFailure } from './first-message.ts'
import type { Started } from './process-restarter.ts'
import { WORKERD } from './workerd-config.ts'
import { workerdEnvironment } from './workerd-environment.ts'

/** The ports that the worker listens on. */
export interface WorkerPorts {
  readonly http: number
  readonly https: number
  /** The port for the supervisor's probes, where the configuration has one. */
  readonly probe?: number
  /** The port on which the supervisor starts a drain, where the configuration has one. */
  readonly drain?: number
}

const listenSchema = z.object({
  event: z.literal('listen'),
  socket: z.enum(['http', 'https', 'probe', 'drain']),
  port: z.int(),
})

export interface WorkerStart {
  readonly logFile: string
  /** Whether the configuration has a probe socket. */
  readonly probe?: boolean
  /**
   * The drain token of the configuration, where it has a drain socket: the worker is then told to drain before it is
   * stopped.
   */
  readonly drainToken?: string
}

/** Starts workerd with a binary configuration, which is passed on its standard input. */
export async function startWorker(
  config: Buffer,
  { logFile, probe = false, drainToken }: WorkerStart,
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
  const own = [...(probe ? (['probe'] as const) : []), ...(drainToken ? (['drain'] as const) : [])]
  const ready = await orFailure(child, portsOf(control, own))
  const { drain } = ready
  if (drain === undefined || drainToken === undefined) return { child, ready }
  return { child: drainBeforeStop(child, { port: drain, token: drainToken }), ready }
}

/** @param own the sockets for the supervisor that the configuration has */
async function portsOf(
  control: Readable,
  own: readonly ('probe' | 'drain')[],
): Promise<WorkerPorts> {
  const ports: Partial<Record<keyof WorkerPorts, number>> = {}
  for await (const line of createInterface({ input: control })) {
    const parsed = listenSchema.safeParse(JSON.parse(line))
    if (parsed.success) ports[parsed.data.socket] = parsed.data.port
    const { http, https, ...others } = ports
    if (http === undefined || https === undefined) continue
    if (own.some((name) => others[name] === undefined)) continue
    control.resume()
    return { http, https, ...others }
  }
  return new Promise(() => {})
}
