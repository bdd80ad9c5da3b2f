import { readFileSync, rmSync } from 'node:fs'
import { readSettings } from '../../../src/host/stack/settings.ts'
import { openStateDir } from '../../../src/host/stack/state-dir.ts'
import { startWithoutWorker } from '../../../src/host/stack/without-worker.ts'
import type { Database } from '../../../src/worker/storage/database.ts'
import type { RouterAddress } from '../customer.ts'
import { startMiniflare, workerdsOfMiniflare } from '../miniflare.ts'
import { startStack, temporaryDirectory, until, type Stack } from '../stack.ts'
import { standinOf } from '../standin.ts'
import type { Mortal } from './chaos.ts'
import { inLedgerFile, inPostgres } from './ledger-access.ts'
import { answerSlowly } from './slow-answers.ts'

/** A whole router on one storage engine, whose processes are killed and whose ledger is checked afterwards. */
export interface CrashWorld {
  readonly router: RouterAddress
  readonly mortal: Mortal<string>
  /** Ends every part; a second time it does nothing. */
  readonly stop: () => Promise<void>
  /** Works on the customer's database itself, once everything has stopped. */
  afterwards(customerId: string, work: (db: Database) => Promise<void>): Promise<void>
  /** Leaves no file behind, once everything has stopped. */
  clean(): void
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => (done ??= work())
}

type Part = 'worker' | 'enclave' | 'standin' | 'ledger'

/** The stack of `npm start` on one of its engines. Its supervisor restarts processes that died. */
export async function startStackWorld(
  engine: 'durable-object' | 'sqlite' | { readonly databaseUrl: string },
): Promise<CrashWorld> {
  const stateDir = temporaryDirectory()
  const env: Record<string, string> =
    typeof engine === 'string'
      ? { STORAGE: engine }
      : { STORAGE: 'postgres', DATABASE_URL: engine.databaseUrl }
  const stack = await startStack({ stateDir, env })
  await answerSlowly(standinOf(stack))
  return {
    router: { baseUrl: stack.local.base_url, adminToken: stack.local.admin_token },
    mortal: mortalStack(stack),
    stop: once(async () => void (await stack.stop())),
    afterwards: (customerId, work) =>
      typeof engine === 'string'
        ? inLedgerFile(stateDir, customerId, work)
        : inPostgres(engine.databaseUrl, work),
    clean: () => rmSync(stateDir, { recursive: true, force: true }),
  }
}

function mortalStack(stack: Stack): Mortal<Part> {
  const died = new Map<Part, number>()
  const pidOf = (part: Part) => stack.localNow().pids[part] ?? 0
  return {
    parts: ['worker', 'enclave', 'standin', ...(pidOf('ledger') === 0 ? [] : ['ledger' as const])],
    // The fifth is the last.
    mostDeathsAMinute: 3,
    kill: (part) => {
      died.set(part, pidOf(part))
      process.kill(pidOf(part), 'SIGKILL')
    },
    untilUp: async () => {
      await until(() => [...died].every(([part, pid]) => pidOf(part) !== pid))
      await until(() => isHealthy(stack.local.base_url))
      if (died.has('standin')) await answerSlowly(standinOf(stack))
      died.clear()
    },
  }
}

/** Miniflare with D1, of which the whole host dies; a new one then opens the same files on the same port. */
export async function startD1World(): Promise<CrashWorld> {
  const state = openStateDir(temporaryDirectory())
  const others = await startWithoutWorker(readSettings({}), state, () => {})
  await answerSlowly(standinOf({ stateDir: state.path }))
  const script = readFileSync(others.bundlePath, 'utf8')
  const directory = state.directory('miniflare')
  const startHost = (port: number) =>
    startMiniflare(script, others.link, { engine: 'd1', directory, port })
  let host = await startHost(0)
  let [pid = 0] = await workerdsOfMiniflare()
  return {
    router: { baseUrl: host.url, adminToken: others.adminToken },
    mortal: {
      parts: ['worker'],
      mostDeathsAMinute: 60,
      kill: () => process.kill(pid, 'SIGKILL'),
      untilUp: async () => {
        await host.stop()
        host = await startHost(Number(new URL(host.url).port))
        pid = (await workerdsOfMiniflare())[0] ?? 0
        await until(() => isHealthy(host.url))
      },
    },
    stop: once(async () => {
      await host.stop()
      await others.stop()
    }),
    afterwards: (customerId, work) => inLedgerFile(directory, customerId, work),
    clean: () => rmSync(state.path, { recursive: true, force: true }),
  }
}

async function isHealthy(baseUrl: string): Promise<boolean> {
  const answer = await fetch(`${baseUrl}/healthz`).catch(() => undefined)
  await answer?.body?.cancel()
  return answer?.status === 200
}
