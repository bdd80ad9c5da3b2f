import type { ClientRequest, IncomingMessage } from 'node:http'
import { isFinalStatus, MalformedAnswer, MAX_INTERIM } from './final-status.ts'

/**
 * Waits for the final response to a request: interim responses are skipped, and an invalid one ends the connection.
 * From here on every event of the request is handled.
 * @throws MalformedAnswer when the status is not final, or there are too many interim responses or an upgrade
 * @throws Error when the connection fails; it is the error that ended the connection
 */
export function finalAnswer(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const refuse = (message: string) => {
      reject(new MalformedAnswer(message))
      sent.destroy()
    }
    let interim = 0
    sent.on('error', reject)
    let answered = false
    sent.once('close', () => {
      // Created only if needed: an error object costs as much as the rest of this function, and nearly every request
      // has an answer.
      if (!answered) reject(new Error('the connection ended without an answer'))
    })
    sent.on('information', () => {
      interim += 1
      if (interim > MAX_INTERIM) refuse('too many interim answers')
    })
    sent.once('upgrade', (_answer, socket) => {
      socket.destroy()
      refuse('an upgrade that was not requested')
    })
    sent.once('response', (answer) => {
      answered = true
      // While the body is read, the reader handles errors; before and after that, `close` is enough.
      answer.on('error', ignoreBroken)
      if (isFinalStatus(answer.statusCode ?? 0)) resolve(answer)
      else refuse('an invalid status')
    })
  })
}

function ignoreBroken(): void {
  // `close` reports the failure.
}
