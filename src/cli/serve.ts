import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Command, Option } from 'commander'
import { CSR_FILE } from '../host/serve/certificates.ts'
import { moveLedger, requireLedger } from '../host/serve/move-ledger.ts'
import { addServeOptions, type ServeOptions } from '../host/serve/options.ts'
import { Server } from '../host/serve/server.ts'
import { readServingFile, SERVING_FILE } from '../host/serve/serving-file.ts'
import { openServeLog, printEvent, tendLogs } from '../host/serve/serve-log.ts'
import { allSecretNames, planReload, planStart, type Start } from '../host/serve/start-plan.ts'
import { withoutSecrets } from '../host/serve/secrets.ts'
import { workerNames } from '../host/stack/worker-name.ts'
import { checkRuntime } from '../host/stack/runtime-check.ts'
import { StartError } from '../host/stack/start-error.ts'
import { EMBEDDED_LEDGERS, type EmbeddedEngine } from '../host/stack/ledger-dir.ts'
import { isInUse, openStateDir } from '../host/stack/state-dir.ts'
import { endingExplainer } from './failure.ts'
import type { HeldSignals } from './held-signals.ts'
import type { Subcommand } from './subcommand.ts'
import { messageOfThrown } from '../protocol/thrown-message.ts'

/**
 * `serve`: a router in production mode, in the foreground. SIGTERM and SIGINT drain it and end it with status 0, SIGHUP
 * reloads configuration, secrets and certificate chain, SIGUSR2 switches to a new TLS key.
 */
export function serveSubcommand(signals: Pick<HeldSignals, 'take'>): Subcommand {
  const command: Command = addServeOptions(new Command('serve'))
    .description('Serve in production mode')
    .showHelpAfterError()
    .action(async (options: ServeOptions) => {
      if (!options.config) {
        command.error("error: required option '--config <file>' not specified")
      }
      await serve(options, signals)
      process.exit(0)
    })
  command
    .command('csr')
    .description(
      'print the certificate request of the router that serves on --state-dir (PKCS #10, PEM)',
    )
    .option('--new-key', 'first have a new key made; it serves once its chain is there')
    .action((_options, csr: Command) => printCsr(csr.optsWithGlobals()))
  command
    .command('move-ledger')
    .description(
      'move the ledger of --state-dir to the other embedded engine; no router may run on it',
    )
    .addOption(
      new Option('--to <engine>', 'the engine that the router is started with afterwards')
        .choices(Object.keys(EMBEDDED_LEDGERS))
        .makeOptionMandatory(),
    )
    .action((_options, move: Command) => moveLedgerOf(move.optsWithGlobals()))
  return { command, explain }
}

function moveLedgerOf({ stateDir, to }: { stateDir: string; to: EmbeddedEngine }): void {
  requireLedger(stateDir, to)
  const { file, former, rows } = moveLedger(openStateDir(stateDir), to)
  console.log(`${rows} rows are in ${file} now: start the router with STORAGE=${to}.`)
  console.log(`${former} has the receipts too: delete it once the router serves.`)
}

async function serve(options: ServeOptions, signals: Pick<HeldSignals, 'take'>): Promise<void> {
  checkRuntime()
  const environment = { ...process.env }
  const start = planStart(options, environment)
  const hidden = allSecretNames(start.config.config)
  process.env = { ...withoutSecrets(environment, hidden) }
  const state = openStateDir(options.stateDir)
  state.remove(SERVING_FILE)
  const jsonConsole = options.jsonConsole === true
  const log = openServeLog(state, jsonConsole)
  const parts = ['enclave', 'ledger', ...workerNames(start.workers)]
  const endOfLogs = tendLogs(state, jsonConsole ? parts : [])
  const planUnsealed = (secrets: Readonly<Record<string, string>>, { config }: Start) =>
    planStart(options, environment, secrets, config)
  const server = await Server.create({ start, state, log, planUnsealed })
  const stopped = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, resolve)
  })
  // Calls `start` before taking the signals, so that a reload requested earlier runs after the start of the router.
  const started = server.start().then(() => stopped)
  signals.take('SIGHUP', () => {
    const reloaded = server.reload((given) => planReload(options, environment, given))
    reloaded.catch((error: unknown) => {
      log(`  reload refused, the last good configuration stays: ${messageOfThrown(error)}`)
    })
  })
  signals.take('SIGUSR2', () => server.renewTls())
  try {
    await Promise.race([stopped, server.failed, started])
  } finally {
    log(`  draining, at most ${options.drainSeconds} s`, 'draining')
    await server.stop(options.drainSeconds * 1_000)
    endOfLogs()
    log('  stopped', 'stopped')
  }
}

const NEW_KEY_TIMEOUT_MS = 10_000

async function printCsr(options: { stateDir: string; newKey?: boolean }): Promise<void> {
  const file = join(options.stateDir, CSR_FILE)
  const { pid } = readServingFile(options.stateDir)
  if (!isInUse(options.stateDir)) {
    throw new StartError(
      `no router is serving here: one that was killed left ${SERVING_FILE} behind`,
    )
  }
  const before = textOf(file)
  if (before === undefined) throw new StartError('there is no request: set service.tls.domains')
  if (options.newKey === true) {
    process.kill(pid, 'SIGUSR2')
    const deadline = performance.now() + NEW_KEY_TIMEOUT_MS
    while (textOf(file) === before && performance.now() < deadline) await delay(50)
    if (textOf(file) === before) throw new StartError('no new key was made: see log/serve.log')
  }
  process.stdout.write(textOf(file) ?? before)
}

function textOf(file: string): string | undefined {
  return statSync(file, { throwIfNoEntry: false }) && readFileSync(file, 'utf8')
}

const explainInWords = endingExplainer({ told: [StartError] })

function explain(error: unknown, words: readonly string[]): number {
  if (process.env['JSON_CONSOLE'] === undefined) return explainInWords(error, words)
  printEvent('start_refused', ownWords(error))
  return process.exit(1)
}

/** The message without its indented lines, which quote the log of a process. */
function ownWords(error: unknown): string | undefined {
  if (!(error instanceof StartError)) return undefined
  return error.message
    .split('\n')
    .filter((line) => !line.startsWith('    '))
    .join('\n')
}
