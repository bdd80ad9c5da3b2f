import { LLMock } from '@copilotkit/aimock'
import { addAnswers } from './answers.ts'
import { ExchangeLog } from './exchange-log.ts'
import { createFront } from './front.ts'
import { Script } from './script.ts'

/**
 * The stand-in provider as a process of its own: `node src/standin/main.ts [port]`, on loopback. It takes the
 * place of a model provider in local runs and tests, tells its parent `{"type": "ready", "port"}`, and ends
 * when the parent does.
 */
const wantedPort = Number(process.argv[2] ?? 0)

const mock = new LLMock({ host: '127.0.0.1', port: 0, journalMaxEntries: 1 })
addAnswers(mock)
const front = createFront(await mock.start(), new ExchangeLog(), new Script())

front.listen(wantedPort, '127.0.0.1', () => {
  const address = front.address()
  const port = typeof address === 'object' ? address?.port : undefined
  if (process.send === undefined) console.log(`stand-in provider on http://127.0.0.1:${port}`)
  else process.send({ type: 'ready', port })
})

process.on('disconnect', () => process.exit(0))
process.on('SIGTERM', () => process.exit(0))
