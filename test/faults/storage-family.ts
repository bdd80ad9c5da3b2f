import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { startPostgres, type PostgresServer } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/stack.ts'
import { content, DONE, interrupted, sound, STOP, usageFrame } from './answers.ts'
import { ask } from './ask.ts'
import { ledgerTextOf, settledLedger } from './ledger.ts'
import { family, type AnyFamily, type Trial } from './trial.ts'
import { openWorld, type StackWorld, type World } from './world.ts'

/** Storage that is full, locked or gone: nothing is done that cannot be written down, and all heals by itself. */

/** How long the answer of a stream goes on after its first words. */
const LONG_ANSWER_MS = 4_000

const ROUTES = [
  { model: 'sound', at: 'alpha' as const, script: sound },
  {
    model: 'long',
    at: 'alpha' as const,
    script: interrupted(async ({ wire }) => {
      await delay(LONG_ANSWER_MS)
      wire.send(content('from the first.') + STOP + usageFrame() + DONE)
      wire.end()
    }),
  },
]

const TIMEOUTS = { idle_ms: 30_000, stream_ms: 60_000 }

const ANSWER = '200 stop "Hello from the first."'
const ROW = 'alpha 7+5, receipt'
const UNAVAILABLE = '503 service_unavailable, retry after 2'
const CUT = '200 "Hello from the first." then service_unavailable'

interface Outage {
  readonly begin: () => Promise<void> | void
  readonly end: () => Promise<void> | void
}

async function whileIn<T>(outage: Outage, act: () => Promise<T>): Promise<T> {
  await outage.begin()
  try {
    return await act()
  } finally {
    await outage.end()
  }
}

/** What an outage has to look like from outside, in the order in which `during` does things. */
const EXPECTED = [
  `a stream that was running: ${CUT}`,
  `a new stream: ${UNAVAILABLE}`,
  `a new answer: ${UNAVAILABLE}`,
  'providers asked once',
  `afterwards: ${ANSWER} | ${ROW}`,
  'the running one was billed: alpha 7+5, no receipt',
  'the refused one was not: no row',
].join('; ')

async function during(world: World, outage: Outage): Promise<string> {
  const running = await world.newCustomer()
  const streaming = await world.newCustomer()
  const whole = await world.newCustomer()
  const calls = () => world.provider.calls('long').length + world.provider.calls('sound').length
  const before = calls()
  const long = ask(world, running, { model: 'long', stream: true })
  while (calls() === before) await delay(10)
  await delay(500)
  const [streamed, answered, cut] = await whileIn(outage, () =>
    Promise.all([
      ask(world, streaming, { model: 'sound', stream: true }),
      ask(world, whole, { model: 'sound', stream: false }),
      long,
    ]),
  )
  const asked = calls() - before
  // A storage that was away may take a moment to be found again.
  await settledLedger(world, streaming, (ledger) => ledger === 'no row').catch(() => {})
  const after = await ask(world, streaming, { model: 'sound', stream: true })
  const row = await ledgerTextOf(world, streaming, after)
  const late = await settledLedger(world, running, (ledger) => ledger === 'alpha 7+5, no receipt')
  return [
    `a stream that was running: ${cut.words}`,
    `a new stream: ${streamed.words}`,
    `a new answer: ${answered.words}`,
    asked === 1 ? 'providers asked once' : `providers asked ${asked} times`,
    `afterwards: ${after.words} | ${row}`,
    `the running one was billed: ${late}`,
    `the refused one was not: ${await ledgerTextOf(world, whole)}`,
  ].join('; ')
}

/** Whether this process may mount, which a full disk is made with. */
function mountsAllowed(): boolean {
  const probe = temporaryDirectory()
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', probe], { stdio: 'ignore' })
    execFileSync('umount', [probe], { stdio: 'ignore' })
    return true
  } catch {
    return false
  } finally {
    rmSync(probe, { recursive: true, force: true })
  }
}

interface DiskWorld extends StackWorld {
  readonly storageDir: string
}

const DISK_FULL: Trial<DiskWorld> = {
  name: 'failure 29: a disk that is full',
  expected: EXPECTED,
  run: (world) => {
    const filler = join(world.storageDir, 'filler')
    return during(world, {
      begin: async () => {
        // What SQLite has already been given it can write to a full disk as well.
        for (const path of databasesIn(world.storageDir)) giveBackLog(path)
        fill(filler)
        await noticed(world)
      },
      end: () => rmSync(filler),
    })
  },
}

/**
 * Has the ledger notice that it can no longer write: until then it admits requests, whose answers it then withholds
 * (docs/storage.md, "Memory and journal").
 */
async function noticed(world: World): Promise<void> {
  const written = await world.newCustomer().then(
    () => true,
    () => false,
  )
  if (written) throw new Error('the storage can still be written')
}

/** Empties the write-ahead log of a database that another process has open. */
function giveBackLog(path: string): void {
  const database = new DatabaseSync(path)
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
}

/** Takes every last byte of a file system. */
function fill(path: string): void {
  for (let size = 1024 * 1024; size >= 1;) {
    try {
      appendFileSync(path, Buffer.alloc(size))
    } catch {
      size = Math.floor(size / 2)
    }
  }
}

const LOCKED: Trial<DiskWorld> = {
  name: 'failure 29: databases that another process has locked',
  expected: EXPECTED,
  long: true,
  run: (world) => {
    let locks: readonly DatabaseSync[] = []
    return during(world, {
      begin: async () => {
        locks = databasesIn(world.storageDir).map(locked)
        await noticed(world)
      },
      end: () => {
        for (const lock of locks) {
          lock.exec('ROLLBACK')
          lock.close()
        }
      },
    })
  },
}

const WRITES_REFUSED: Trial<DiskWorld> = {
  name: 'failure 29: a file system that refuses every write, as one that was mounted read-only after an error',
  expected: EXPECTED,
  run: (world) => {
    const { ledger = Number.NaN } = world.stack.local.pids
    // No file system can be mounted read-only under files that are open. The kernel refuses this process every write just the same;
    // workerd would end at once, by SIGXFSZ.
    const limit = (bytes: string) =>
      execFileSync('prlimit', ['--pid', String(ledger), `--fsize=${bytes}:unlimited`])
    return during(world, {
      begin: async () => {
        limit('0')
        await noticed(world)
      },
      end: () => void limit('unlimited'),
    })
  },
}

function databasesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => /([0-9a-f]{64}|^ledger)\.sqlite$/.test(name))
    .map((name) => join(directory, name))
}

function locked(path: string): DatabaseSync {
  const database = new DatabaseSync(path)
  database.exec('BEGIN IMMEDIATE')
  return database
}

async function openDiskWorld(storage: 'durable-object' | 'sqlite'): Promise<DiskWorld> {
  const stateDir = temporaryDirectory()
  const storageDir = join(stateDir, 'storage')
  mkdirSync(storageDir)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=48m,mode=700', 'none', storageDir])
  const unmount = () => {
    execFileSync('umount', ['-l', storageDir])
    if (existsSync(stateDir)) rmSync(stateDir, { recursive: true, force: true })
  }
  try {
    const world = await openWorld(ROUTES, {
      timeouts: TIMEOUTS,
      stateDir,
      env: { STORAGE: storage },
    })
    const close = async () => {
      await world.close()
      unmount()
    }
    return { ...world, storageDir, close }
  } catch (error) {
    unmount()
    throw error
  }
}

interface PostgresWorld extends World {
  readonly server: PostgresServer
}

const POSTGRES_GONE: Trial<PostgresWorld> = {
  name: 'failure 29: a PostgreSQL server that is gone and comes back',
  expected: EXPECTED,
  long: true,
  run: (world) =>
    during(world, { begin: () => world.server.crash(), end: () => world.server.restart() }),
}

const POSTGRES_FROZEN: Trial<PostgresWorld> = {
  name: 'failure 29: a PostgreSQL server that is frozen',
  expected: EXPECTED,
  long: true,
  run: (world) =>
    during(world, {
      begin: () => signalAll(world.server, 'SIGSTOP'),
      end: () => signalAll(world.server, 'SIGCONT'),
    }),
}

/** To the server and the processes that serve its connections. */
function signalAll({ pid = 0 }: PostgresServer, signal: NodeJS.Signals): void {
  const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' })
  for (const child of children.trim().split(/\s+/)) process.kill(Number(child), signal)
  process.kill(pid, signal)
}

async function openPostgresWorld(): Promise<PostgresWorld> {
  const server = await startPostgres()
  const env = { STORAGE: 'postgres', DATABASE_URL: await server.createDatabase() }
  const world = await openWorld(ROUTES, { timeouts: TIMEOUTS, env })
  const close = async () => {
    await world.close()
    await server.stop()
  }
  return { ...world, server, close }
}

/** PostgreSQL faults need a server of our own to end. */
const OWN_POSTGRES = process.env['DATABASE_URL'] === undefined

export const STORAGE_FAMILIES: readonly AnyFamily[] = [
  ...(mountsAllowed()
    ? [
        family({
          name: 'storage faults on a disk',
          trials: [DISK_FULL, LOCKED],
          atATime: 1,
          open: () => openDiskWorld('durable-object'),
          close: (world) => world.close(),
        }),
        family({
          name: 'storage faults on the disk of a ledger process',
          trials: [DISK_FULL, WRITES_REFUSED, LOCKED],
          atATime: 1,
          open: () => openDiskWorld('sqlite'),
          close: (world) => world.close(),
        }),
      ]
    : []),
  ...(OWN_POSTGRES
    ? [
        family({
          name: 'storage faults of PostgreSQL',
          trials: [POSTGRES_GONE, POSTGRES_FROZEN],
          atATime: 1,
          open: openPostgresWorld,
          close: (world) => world.close(),
        }),
      ]
    : []),
]
