import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type PeerCertificate } from 'node:tls'
import { z } from 'zod'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import {
  readServingFile,
  SERVING_FILE,
  type ServingFile,
} from '../../src/host/serve/serving-file.ts'
import { becomesTrue } from './stack.ts'

export const ADMIN_TOKEN = 'an-admin-token-for-tests-only'

export interface ServeRun {
  readonly stateDir: string
  readonly configFile: string
  output(): string
  signal(signal: NodeJS.Signals): void
  /** The exit status; null when a signal ended it. */
  readonly ended: Promise<number | null>
  hasEnded(): boolean
  /** Ends it, if need be, and removes its files. */
  remove(): Promise<void>
}

/** A router in production mode, as `npm run serve` starts it, on free ports. */
export interface Serving extends ServeRun {
  readonly at: ServingFile
  /** The key of a customer made for the test. */
  readonly apiKey: string
  /** A request with the key of a customer made for the test. */
  fetch(path: string, init?: RequestInit): Promise<Response>
}

export interface ServeOptions {
  readonly config: unknown
  readonly env?: Readonly<Record<string, string>>
  readonly args?: readonly string[]
  /** In place of one that is made and removed with the run. */
  readonly stateDir?: string
}

/** Runs the command without waiting. */
export function runServe({ config, env = {}, args = [], stateDir: kept }: ServeOptions): ServeRun {
  const directory = mkdtempSync(join(tmpdir(), 'cmr-serve-'))
  const [stateDir, configFile] = [kept ?? join(directory, 'state'), join(directory, 'router.json')]
  writeFileSync(configFile, JSON.stringify(config))
  const flags = ['--config', configFile, '--state-dir', stateDir, ...args]
  const ports = ['--http', '127.0.0.1:0', '--https', '127.0.0.1:0']
  const child = spawn(
    process.execPath,
    [join(PROJECT_DIR, 'src/cli/main.ts'), 'serve', ...ports, ...flags],
    { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } },
  )
  let output = ''
  let over = false
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  }
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      over = true
      resolve(code)
    })
  })
  return {
    stateDir,
    configFile,
    output: () => output,
    signal: (signal) => void child.kill(signal),
    ended,
    hasEnded: () => over,
    async remove() {
      if (!over) child.kill('SIGKILL')
      await ended
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** @throws Error with its output when it does not come up */
export async function startServe(options: ServeOptions): Promise<Serving> {
  const run = runServe({ ...options, env: { ADMIN_TOKEN, ...options.env } })
  await becomesTrue(() => run.hasEnded() || existsSync(join(run.stateDir, SERVING_FILE)))
  if (run.hasEnded() || !existsSync(join(run.stateDir, SERVING_FILE))) {
    await run.remove()
    throw new Error(`the router did not come up:\n${run.output()}`)
  }
  const at = readServingFile(run.stateDir)
  const key = await makeKey(at.http_url)
  return {
    ...run,
    at,
    apiKey: key,
    fetch: (path, init = {}) => {
      const headers = new Headers(init.headers)
      if (!headers.has('authorization')) headers.set('authorization', `Bearer ${key}`)
      return fetch(at.http_url + path, { ...init, headers })
    },
  }
}

export function chatBody(model: string, stream = false): RequestInit {
  const messages = [{ role: 'user', content: 'Hello!' }]
  return { method: 'POST', body: JSON.stringify({ model, stream, messages }) }
}

/** What a TLS handshake on a loopback port shows, without checking who signed it. */
export async function shownCertificate(port: number): Promise<PeerCertificate> {
  const { promise, resolve, reject } = Promise.withResolvers<PeerCertificate>()
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
    resolve(socket.getPeerCertificate())
    socket.destroy()
  })
  socket.once('error', reject)
  return promise
}

/** One GET over TLS with a connection of its own, without checking who signed the certificate. */
export async function getOverTls(port: number, path: string) {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
  const options = { host: '127.0.0.1', port, path, rejectUnauthorized: false, agent: false }
  const request = httpsRequest(options, (response) => {
    response.resume()
    resolve({ status: response.statusCode, ...response.headers })
  })
  request.once('error', reject)
  request.end()
  return promise
}

/** A key of a new customer who pays afterwards. */
export async function makeKey(baseUrl: string): Promise<string> {
  const admin = new AdminApi(baseUrl, ADMIN_TOKEN)
  const customer = await admin.call('POST', '/admin/customers', { name: 't', billing: 'postpaid' })
  const { id } = z.object({ id: z.string() }).parse(customer)
  const key = await admin.call('POST', `/admin/customers/${id}/keys`, { name: 't' })
  return z.object({ key: z.string() }).parse(key).key
}
