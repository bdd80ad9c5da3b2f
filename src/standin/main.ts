import type { Server } from 'node:net'
import { LLMock } from '@copilotkit/aimock'
import { z } from 'zod'
import { obtainSimulatedChain } from '../enclave/snp/simulated-source.ts'
import { simulatedChipSchema } from '../protocol/boot.ts'
import { addAnswers } from './answers.ts'
import { createAttestedFront } from './attested-front.ts'
import { openStandinIdentity } from './attested-identity.ts'
import { ExchangeLog } from './exchange-log.ts'
import { createFront } from './front.ts'
import { Script } from './script.ts'

/**
 * The stand-in provider as a process of its own: `node src/standin/main.ts [port] [https port]`, on loopback. It
 * replaces a model provider in local runs and tests, and exits with its parent. It sends `StandinReady` to its parent;
 * after it receives `{"type": "chip", "chip"}` it has evidence for its HTTPS port. `STANDIN_IDENTITY` restores the
 * identity of an earlier process.
 */
const [wantedPort = 0, wantedTlsPort = 0] = process.argv.slice(2).map(Number)

const mock = new LLMock({ host: '127.0.0.1', port: 0, journalMaxEntries: 1 })
addAnswers(mock)
const front = createFront(await mock.start(), new ExchangeLog(), new Script())
const identity = await openStandinIdentity(process.env['STANDIN_IDENTITY'], new Date())
const attested = createAttestedFront(identity, (...exchange) => front.emit('request', ...exchange))

const chipMessageSchema = z.object({ type: z.literal('chip'), chip: simulatedChipSchema })

process.on('message', (received) => {
  const message = chipMessageSchema.safeParse(received)
  if (!message.success) return
  obtainSimulatedChain(message.data.chip, Date.now())
    .then((chain) => attested.attest(chain, Date.now))
    .catch(() => process.exit(1))
})
process.on('disconnect', () => process.exit(0))
process.on('SIGTERM', () => process.exit(0))

const port = await listen(front, wantedPort)
const tlsPort = await listen(attested.server, wantedTlsPort)
if (process.send === undefined) console.log(`stand-in provider on http://127.0.0.1:${port}`)
else {
  const { kept, root } = identity
  process.send({ type: 'ready', port, tlsPort, rootJwk: root.publicJwk, identity: kept })
}

function listen(server: Server, wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(wanted, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}
