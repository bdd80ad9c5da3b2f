import { fork, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { CHIP_FILE_VARIABLE } from '../../src/enclave/open-machine.ts'
import type { DaemonBoot, DaemonReady, FromDaemon, ToDaemon } from '../../src/protocol/boot.ts'
import { callLink, type LinkReply } from './link-client.ts'
import { makeCertificatePair, type CertificatePair } from './link-material.ts'

const MAIN = fileURLToPath(new URL('../../src/enclave/main.ts', import.meta.url))

export interface DaemonProcess {
  readonly child: ChildProcess
  readonly boot: DaemonBoot
  readonly worker: CertificatePair
  readonly directory: string
  readonly configPath: string
  /** The next message of that type, or the first one already received and not yet taken. */
  next<T extends FromDaemon['type']>(type: T): Promise<Extract<FromDaemon, { type: T }>>
  send(message: ToDaemon): void
  writeConfig(config: unknown): Promise<void>
  call(
    ready: DaemonReady,
    path: string,
    init?: { method?: string; body?: string },
  ): Promise<LinkReply>
  exit: Promise<number | null>
  stop(): Promise<void>
}

/**
 * A daemon as a real child process, booted over IPC.
 * @param log a descriptor for its log, in place of the standard output of the tests
 */
export async function startDaemonProcess(
  config: unknown,
  change: Partial<DaemonBoot> = {},
  env: NodeJS.ProcessEnv = {},
  log: number | 'inherit' = 'inherit',
): Promise<DaemonProcess> {
  const directory = await mkdtemp(join(tmpdir(), 'cmr-daemon-'))
  const configPath = join(directory, 'config.json')
  const writeConfig = (value: unknown) => writeFile(configPath, JSON.stringify(value))
  await writeConfig(config)
  const [server, worker] = await Promise.all([
    makeCertificatePair('enclave'),
    makeCertificatePair('worker'),
  ])
  const boot: DaemonBoot = {
    mode: modeOf(config),
    configText: null,
    configPath,
    stateDir: join(directory, 'state'),
    adminToken: 'admin-token',
    link: {
      port: 0,
      host: '127.0.0.1',
      serverCertPem: server.certPem,
      serverKeyPem: server.keyPem,
      workerCertPem: worker.certPem,
    },
    maxStreams: 1_000,
    platform: 'simulated',
    ownUrl: modeOf(config) === 'local' ? 'http://127.0.0.1:8787' : null,
    tls: null,
    release: null,
    ...change,
  }
  const stdio = ['inherit', log, 'inherit', 'ipc'] as const
  const child = fork(MAIN, { env: { ...inherited(), ...env }, stdio: [...stdio] })
  const inbox = createInbox(child)
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve))
  child.send({ type: 'boot', boot } satisfies ToDaemon)
  return {
    child,
    boot,
    worker,
    directory,
    configPath,
    next: inbox,
    send: (message) => void child.send(message),
    writeConfig,
    call: ({ linkPort: port }, path, init) =>
      callLink({ port, serverCertPem: server.certPem, client: worker }, path, init),
    exit,
    async stop() {
      child.kill('SIGKILL')
      await exit
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Of the environment of the tests only what makes a start quick: compiled modules, and a chip that is made already. */
function inherited(): NodeJS.ProcessEnv {
  const names = ['PATH', 'NODE_COMPILE_CACHE', CHIP_FILE_VARIABLE]
  return Object.fromEntries(names.map((name) => [name, process.env[name]]))
}

/** A daemon is started in the mode that its configuration is for. */
function modeOf(config: unknown): DaemonBoot['mode'] {
  return configSchema.parse(config).service?.mode ?? 'production'
}

const configSchema = z.looseObject({
  service: z.looseObject({ mode: z.enum(['production', 'local']).optional() }).optional(),
})

function createInbox(child: ChildProcess): DaemonProcess['next'] {
  const received: FromDaemon[] = []
  let arrived = Promise.withResolvers<void>()
  child.on('message', (message: FromDaemon) => {
    received.push(message)
    arrived.resolve()
    arrived = Promise.withResolvers()
  })
  let ended = false
  child.once('disconnect', () => {
    ended = true
    arrived.resolve()
  })
  return async (type) => {
    for (;;) {
      const index = received.findIndex((message) => message.type === type)
      const [message] = index === -1 ? [] : received.splice(index, 1)
      if (message !== undefined && isOf(message, type)) return message
      if (ended) throw new Error(`the daemon ended before it said "${type}"`)
      await arrived.promise
    }
  }
}

function isOf<T extends FromDaemon['type']>(
  message: FromDaemon,
  type: T,
): message is Extract<FromDaemon, { type: T }> {
  return message.type === type
}
