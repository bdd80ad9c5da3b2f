import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { LEDGER_FILE, ledgerBootSchema, type FromLedger } from '../protocol/ledger-link.ts'
import { traceError } from '../protocol/error-trace.ts'
import { messageOfThrown } from '../protocol/thrown-message.ts'
import { jsonLog } from '../enclave/log.ts'
import { openLedger } from './ledger.ts'
import { serveLedger } from './ledger-link.ts'

/**
 * The ledger's process: the one writer of the SQLite database that all workers of this host share. The supervisor starts
 * it with an IPC channel, and it ends with that channel.
 */
function main(): void {
  process.once('message', (received) => {
    boot(received).then(
      (port) => send({ type: 'ready', port }),
      (error: unknown) => refuse(messageOfThrown(error)),
    )
  })
  // Without a handler Node would print the message, which may quote a value of a row.
  process.on('uncaughtException', fail)
  // Exiting at once is safe: nothing was confirmed that is not on the disk.
  for (const ending of ['disconnect', 'SIGTERM', 'SIGINT'])
    process.on(ending, () => process.exit(0))
}

async function boot(received: unknown): Promise<number> {
  const { directory, others, link } = ledgerBootSchema.parse(received)
  const other = others.map((name) => join(directory, name)).find((file) => existsSync(file))
  if (other !== undefined) throw new Error(`${other} is the ledger of another engine`)
  const ledger = await openLedger(join(directory, LEDGER_FILE), { now: Date.now, died: fail })
  return (await serveLedger(ledger, link, randomUUID())).port
}

/** Ends the process, because a ledger that works only in part is of no use: the supervisor starts a new one. */
function fail(error: unknown): void {
  jsonLog(Date.now, (line) => void process.stdout.write(line))(
    'unexpected_error',
    traceError(error),
  )
  process.exit(1)
}

function send(message: FromLedger, sent?: () => void): void {
  if (process.connected) process.send?.(message, undefined, undefined, sent)
}

function refuse(reason: string): void {
  if (!process.connected) process.exit(1)
  send({ type: 'refused', reason }, () => process.exit(1))
}

main()
