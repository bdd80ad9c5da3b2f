import { randomUUID } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { startCarrier } from './carrier.ts'
import { CARRIER_HEARTBEAT, startBeating } from './heartbeat.ts'
import type { CarrierData, FromCarrier, ToCarrier } from './messages.ts'
import { Questions } from './questions.ts'

/** The program of a carrier's thread. An uncaught error ends the thread, and a new one is started. */
const data: CarrierData = workerData
const send = (message: FromCarrier) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(message)
}
const questions = new Questions((id, question) => send({ type: 'asked', id, question }))
parentPort?.on('message', (answer: ToCarrier) => questions.answered(answer))

const { port } = await startCarrier(data, {
  questions,
  send,
  thread: randomUUID(),
  now: Date.now,
})
startBeating(data.beats, CARRIER_HEARTBEAT)
send({ type: 'listening', port })
