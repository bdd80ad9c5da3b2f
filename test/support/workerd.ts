import { spawn, type ChildProcess } from 'node:child_process'
import { createRequire } from 'node:module'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import type { LinkEnd } from '../../src/host/stack/link-binding.ts'

/** Required and not imported: vitest and Node disagree on what this package's default export is. */
const WORKERD = z
  .object({ default: z.string() })
  .parse(createRequire(import.meta.url)('workerd')).default

export interface WorkerdProcess {
  readonly port: number
  readonly pid: number
  /** Ends the process with a signal and waits for its end. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

/** A worker with the two storage classes, as plain workerd runs it. */
export interface WorkerdOptions {
  /** The bundled ES module. */
  readonly script: string
  /** Text bindings. */
  readonly text: Readonly<Record<string, string>>
  /** The way to a ledger process, as the binding `LEDGER`. */
  readonly ledger?: LinkEnd
  /** Whether there are the class `ChunkObject`, as the binding `CHUNKS`, the worker's own `pipes`, as `PIPES`, and `gc()`. */
  readonly pipes?: boolean
  /** Where Durable Objects live; a directory of its own when absent. */
  readonly directory?: string
}

/** Starts plain workerd on a free port of loopback. */
export async function startWorkerd(options: WorkerdOptions): Promise<WorkerdProcess> {
  const home = await mkdtemp(join(tmpdir(), 'cmr-test-workerd-'))
  const directory = options.directory ?? join(home, 'objects')
  await mkdir(directory, { recursive: true })
  await writeFile(join(home, 'worker.js'), options.script)
  await writeFile(join(home, 'config.capnp'), configText(options, directory))
  const child = spawn(WORKERD, ['serve', join(home, 'config.capnp'), '--control-fd=3'], {
    stdio: ['ignore', 'ignore', process.env['WORKERD_LOG'] ? 'inherit' : 'ignore', 'pipe'],
  })
  const port = await listeningPort(child)
  return {
    port,
    pid: child.pid ?? 0,
    async stop(signal = 'SIGKILL') {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = new Promise((resolve) => child.once('exit', resolve))
        child.kill(signal)
        await ended
      }
      await rm(home, { recursive: true, force: true })
    },
  }
}

function listeningPort(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`workerd ended with ${code}`)))
    const control = child.stdio[3]
    let text = ''
    control?.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const port = /"event":"listen"[^\n]*"port":([0-9]+)/.exec(text)?.[1]
      if (port !== undefined) resolve(Number(port))
    })
  })
}

const PIPES = `(name = "CHUNKS", durableObjectNamespace = "ChunkObject"),
      (name = "PIPES", service = (name = "main", entrypoint = "pipes")),`

function configText({ text, ledger, pipes = false }: WorkerdOptions, directory: string): string {
  const texts = Object.entries(text).map(
    ([name, value]) => `(name = "${name}", text = ${JSON.stringify(value)}),`,
  )
  const links = ledger === undefined ? [] : ['(name = "LEDGER", service = "ledger"),']
  const bindings = [...texts, ...links, ...(pipes ? [PIPES] : [])].join('\n      ')
  const chunkObject = '(className = "ChunkObject", uniqueKey = "cmr-chunks", enableSql = true),'
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "worker.js", esModule = embed "worker.js")],
      compatibilityDate = "2026-11-17",
      bindings = [
      (name = "STORE", durableObjectNamespace = "StoreObject"),
      (name = "STORE_IS_LOCAL", json = "true"),
      (name = "POSTGRES", durableObjectNamespace = "PostgresPool"),
      ${bindings}
      ],
      durableObjectNamespaces = [
        (
          className = "StoreObject", uniqueKey = "cmr-ledger", enableSql = true,
          preventEviction = true,
        ),
        (className = "PostgresPool", uniqueKey = "cmr-postgres-pool", enableSql = true),
        ${pipes ? chunkObject : ''}
      ],
      durableObjectStorage = (localDisk = "disk"),
    )),
    (name = "disk", disk = (path = ${JSON.stringify(directory)}, writable = true)),
    ${ledger === undefined ? '' : linkText(ledger)}
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
  v8Flags = [${pipes ? '"--expose-gc"' : ''}],
);
`
}

function linkText({ port, worker, serverCertPem, host = '' }: LinkEnd): string {
  const quoted = JSON.stringify
  return `(name = "ledger", external = (address = "127.0.0.1:${port}", https = (
      options = (),
      certificateHost = ${quoted(host)},
      tlsOptions = (
        keypair = (privateKey = ${quoted(worker.keyPem)}, certificateChain = ${quoted(worker.certPem)}),
        trustedCertificates = [${quoted(serverCertPem)}],
        minVersion = tls1Dot3,
      ),
    ))),`
}
