import { randomUUID } from 'node:crypto'
import { toDaemonSchema, type FromDaemon, type ToDaemon } from '../protocol/boot.ts'
import { traceError } from '../protocol/error-trace.ts'
import { messageOfThrown } from '../protocol/thrown-message.ts'
import { startDaemon, type Daemon } from './daemon.ts'
import { makeTlsIdentity } from './keys/tls-identity.ts'
import { jsonLog } from './log.ts'
import { Offers } from './sealed/offers.ts'
import { openMachine } from './open-machine.ts'
import { newKdsWaits } from './snp/kds.ts'
import { returnUnusedMemory } from './unused-memory.ts'

const CLOCKS = { now: Date.now, monotonic: () => performance.now() }

/** The handler for each type of message from the supervisor. */
type Actions = Readonly<Record<ToDaemon['type'], (message: ToDaemon) => Promise<void>>>

/**
 * The enclave daemon's process. The supervisor starts it with an IPC channel. When that channel closes, the process
 * exits, because nothing else uses its keys.
 */
function main(): void {
  let starting: Promise<Daemon> | undefined
  const log = jsonLog(Date.now, (line) => void process.stdout.write(line))
  const env = { ...process.env }

  const offers = new Offers(notify)

  const act: Actions = {
    async boot(message) {
      if (message.type !== 'boot' || starting !== undefined)
        throw new Error('a second boot message')
      const chance = { random: Math.random, thread: randomUUID() }
      const machine = { kdsWaits: newKdsWaits(), openMachine }
      const tools = { env, ...CLOCKS, ...chance, notify, log, offers, ...machine }
      starting = startDaemon(message.boot, tools)
      const { ready } = await starting
      // Loading the program leaves more garbage in memory than the program itself takes.
      returnUnusedMemory()
      notify({ type: 'ready', ready })
    },
    async reload(message) {
      if (message.type !== 'reload') return
      const { id, configText: text, secrets, adminToken } = message
      await (await starting)?.reload({ id, text, secrets, adminToken })
    },
    async unseal_answered(message) {
      if (message.type === 'unseal_answered') offers.answered(message.problem)
    },
    async end_carrier(message) {
      if (message.type === 'end_carrier') (await starting)?.endCarrier(message.port)
    },
    async clients_unread(message) {
      if (message.type === 'clients_unread') (await starting)?.clientsUnread(message.count)
    },
    async prepare_tls(message) {
      if (message.type !== 'prepare_tls') return
      notify({ type: 'tls_prepared', tls: await makeTlsIdentity(message.domains, new Date()) })
    },
    async renew_tls(message) {
      const daemon = await starting
      const given = message.type === 'renew_tls' ? message.tls : undefined
      try {
        if (daemon) notify({ type: 'tls_renewed', tls: await daemon.renewTls(given) })
      } catch (error) {
        notify({ type: 'tls_refused', reason: messageOfThrown(error) })
      }
    },
  }

  async function stop(): Promise<void> {
    const daemon = await starting?.catch(() => undefined)
    await daemon?.close()
    process.exit(0)
  }

  process.on('message', (received) => receive(received, act))
  // A failed write to the log, as on a full disk, must not end the process: Node tries again with the next line.
  process.stdout.on('error', () => {})
  // Without this, Node would print the error's message, which may contain prompts or keys.
  process.on('uncaughtException', (error) => {
    log('unexpected_error', traceError(error))
    leave()
  })
  process.on('SIGHUP', () => void act.reload({ type: 'reload' }).catch(() => {}))
  for (const ending of ['disconnect', 'SIGTERM', 'SIGINT']) process.on(ending, () => void stop())
}

function receive(received: unknown, act: Actions): void {
  const message = toDaemonSchema.safeParse(received)
  if (!message.success) refuse('the supervisor sent a message of an unknown form')
  else
    act[message.data.type](message.data).catch((error: unknown) => refuse(messageOfThrown(error)))
}

function notify(message: FromDaemon): void {
  if (process.connected) process.send?.(message)
}

/** Exits once the supervisor has received the message. */
function refuse(reason: string): void {
  if (!process.connected || process.send === undefined) leave()
  else process.send({ type: 'refused', reason } satisfies FromDaemon, leave)
}

function leave(): void {
  process.exit(1)
}

main()
